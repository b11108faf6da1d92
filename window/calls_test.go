package window_test

import (
	"encoding/json"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/window"
)

func TestCallsCountOutcomes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := window.NewCalls(window.CallsConfig{Slow: time.Second})
		c.Record(window.Success, time.Second) // the threshold itself is not slow
		c.Record(window.Failure, time.Second+1)
		c.Record(window.Failure, 0)
		c.Record(window.Success, time.Minute)
		c.Record(window.Failure, -time.Second)
		c.Record(window.Ignored, time.Hour)
		c.Record(window.Outcome(99), 0)
		c.Refuse()
		want := window.Counts{
			Successes: 2, Failures: 3, Slow: 2, SlowFailures: 1, Ignored: 2, Refused: 1, ConsecutiveFailures: 1,
		}
		require.Equal(t, want, c.Counts())
		require.Equal(t, window.Totals(want), c.Totals())
		time.Sleep(time.Hour)
		require.Equal(t, window.Counts{ConsecutiveFailures: 1}, c.Counts(), "consecutive failures do not age")
		require.Equal(t, window.Totals(want), c.Totals())
	})
}

func TestOldBucketsLeaveWithWhatTheyHeld(t *testing.T) {
	c := window.NewCallsAt(window.CallsConfig{Span: 5 * time.Second, Buckets: 5}, t0)
	for s := range 5 {
		for range s + 1 {
			c.RecordAt(t0.Add(time.Duration(s)*time.Second), window.Success, 0)
		}
	}
	for s, want := range []int64{4: 15, 5: 14, 6: 12, 7: 9, 8: 5, 9: 0} {
		if want > 0 || s == 9 {
			require.Equal(t, want, c.CountsAt(t0.Add(time.Duration(s)*time.Second)).Calls(), "at %d s", s)
		}
	}
}

func TestNewCallsPanicsOnAnInvalidConfig(t *testing.T) {
	const want = "window: Span is -1s, must lie between 1ms and 720h0m0s\nwindow: Slow is -1ns, must be at least 0"
	c := window.CallsConfig{Span: -time.Second, Slow: -1}
	require.EqualError(t, c.Validate(), want)
	require.PanicsWithError(t, want, func() { window.NewCalls(c) })
}

func TestRatesOfCounts(t *testing.T) {
	var none window.Counts
	require.Zero(t, none.Calls())
	require.Zero(t, none.FailureRate())
	require.Zero(t, none.SlowRate())

	c := window.Counts{Successes: 6, Failures: 2, Slow: 4, SlowFailures: 1, Ignored: 9, Refused: 9}
	require.Equal(t, int64(8), c.Calls())
	require.Equal(t, 0.25, c.FailureRate())
	require.Equal(t, 0.5, c.SlowRate())
	require.Equal(t, window.Counts{Successes: 5, Slow: 1}, window.Totals(c).Minus(window.Totals{Successes: 1, Failures: 2, Slow: 3, SlowFailures: 1, Ignored: 9, Refused: 9}))

	text, err := json.Marshal(c)
	require.NoError(t, err)
	require.JSONEq(t, `{"successes":6,"failures":2,"slow":4,"slow_failures":1,"ignored":9,"refused":9,"consecutive_failures":0}`, string(text))
}

// TestCountsAreNotTotals checks that Totals().Minus(Counts()), which would be wrong, does not
// compile.
func TestCountsAreNotTotals(t *testing.T) {
	counts, totals := reflect.TypeFor[window.Counts](), reflect.TypeFor[window.Totals]()
	require.False(t, counts.AssignableTo(totals))
	require.False(t, totals.AssignableTo(counts))
}

func TestOutcomeString(t *testing.T) {
	require.Equal(t, "success failure ignored unknown",
		window.Success.String()+" "+window.Failure.String()+" "+window.Ignored.String()+" "+window.Outcome(9).String())
}

func TestRecordingAllocatesNothing(t *testing.T) {
	calls := window.NewCalls(window.CallsConfig{Span: 10 * time.Millisecond, Slow: 1})
	counter := window.NewCounter(window.Config{Span: 10 * time.Millisecond})
	require.Zero(t, testing.AllocsPerRun(20_000, func() {
		calls.Record(window.Failure, time.Second)
		calls.Refuse()
		counter.Add(1)
		_ = calls.Counts()
		_ = counter.Sum()
	}))
}
