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

// Comments of tests name the numbered scenarios of the project that are about windows: B are those
// of breakers, L those of limiters.

// callStep is a number of calls at a time after t0, and the counts of the window after them.
type callStep struct {
	at       time.Duration
	do       string // one letter per call: S for success, E for failure, s and e for slow ones
	calls    int64
	failures int64
	slow     int64
}

func replay(t *testing.T, c *window.Calls, steps []callStep) {
	t.Helper()
	const fast, slow = 100 * time.Millisecond, time.Second
	for i, s := range steps {
		now := t0.Add(s.at)
		for _, call := range s.do {
			switch call {
			case 'S':
				c.RecordAt(now, window.Success, fast)
			case 'E':
				c.RecordAt(now, window.Failure, fast)
			case 's':
				c.RecordAt(now, window.Success, slow)
			case 'e':
				c.RecordAt(now, window.Failure, slow)
			}
		}
		got := c.CountsAt(now)
		require.Equal(t, []int64{s.calls, s.failures, s.slow}, []int64{got.Calls(), got.Failures, got.Slow},
			"calls, failures, slow of step %d at %v", i, s.at)
	}
}

const slowThreshold = 500 * time.Millisecond

// Scenario B42.
func TestCallsLeaveAWindowOfFiveSeconds(t *testing.T) {
	const ms = time.Millisecond
	replay(t, window.NewCallsAt(window.CallsConfig{Span: 5 * time.Second, Buckets: 5, Slow: slowThreshold}, t0), []callStep{
		{0, "E", 1, 1, 0},
		{100 * ms, "S", 2, 1, 0},
		{800 * ms, "e", 3, 2, 1},
		{4800 * ms, "", 3, 2, 1},
		{5800 * ms, "", 0, 0, 0},
		{5900 * ms, "S", 1, 0, 0},
		{10_900 * ms, "S", 1, 0, 0},
	})
}

// Scenario B43.
func TestFiveSecondsWithCallsEachSecond(t *testing.T) {
	const ms = time.Millisecond
	replay(t, window.NewCallsAt(window.CallsConfig{Span: 5 * time.Second, Buckets: 5}, t0), []callStep{
		{0, "E", 1, 1, 0},
		{100 * ms, "S", 2, 1, 0},
		{200 * ms, "S", 3, 1, 0},
		{1200 * ms, "S", 4, 1, 0},
		{2200 * ms, "S", 5, 1, 0},
		{3200 * ms, "E", 6, 2, 0},
		{4200 * ms, "S", 7, 2, 0},
		{5200 * ms, "S", 5, 1, 0},
		{6200 * ms, "S", 5, 1, 0},
		{11_200 * ms, "S", 1, 0, 0},
	})
}

// Scenario B59.
func TestRollingTenSeconds(t *testing.T) {
	const s = time.Second
	c := window.NewCallsAt(window.CallsConfig{Span: 10 * s, Buckets: 10}, t0)
	replay(t, c, []callStep{
		{0, "ES", 2, 1, 0},
		{2 * s, "", 2, 1, 0},
		{2 * s, "ES", 4, 2, 0},
		{4 * s, "SS", 6, 2, 0},
		{6 * s, "SS", 8, 2, 0},
		{8 * s, "", 8, 2, 0},
		{8 * s, "SS", 10, 2, 0},
		{10 * s, "", 8, 1, 0},
		{12 * s, "", 6, 0, 0},
	})
}

// Scenario B60.
func TestTheOldestSecondLeaves(t *testing.T) {
	c := window.NewCallsAt(window.CallsConfig{Span: 10 * time.Second}, t0)
	for s := range 10 {
		c.RecordAt(t0.Add(time.Duration(s)*time.Second), window.Success, 0)
	}
	for s, want := range map[time.Duration]int64{10: 9, 11: 8, 18: 1, 19: 0, 20: 0} {
		require.Equal(t, want, c.CountsAt(t0.Add(s*time.Second)).Calls(), "at %d s", s)
	}
	replay(t, window.NewCallsAt(window.CallsConfig{Span: 10 * time.Second}, t0), []callStep{
		{0, "ESSSS", 5, 1, 0}, {10*time.Second - 1, "", 5, 1, 0}, {10 * time.Second, "", 0, 0, 0}, {10*time.Second + time.Millisecond, "", 0, 0, 0},
	})
}

// Scenario B61.
func TestAWindowOfOneBucket(t *testing.T) {
	replay(t, window.NewCallsAt(window.CallsConfig{Span: 100 * time.Millisecond, Buckets: 1}, t0), []callStep{
		{0, "SE", 2, 1, 0}, {100*time.Millisecond - 1, "", 2, 1, 0}, {100 * time.Millisecond, "", 0, 0, 0},
	})
}

// Scenario B75.
func TestGapsOfAnyLength(t *testing.T) {
	const s = time.Second
	replay(t, window.NewCallsAt(window.CallsConfig{Span: 10 * s}, t0), []callStep{
		{0, "E", 1, 1, 0},
		{5 * s, "S", 2, 1, 0},
		{10*s + 500*time.Millisecond, "S", 2, 0, 0},
		{1010 * s, "E", 1, 1, 0},
	})
	replay(t, window.NewCallsAt(window.CallsConfig{Span: 10 * s}, t0), []callStep{
		{0, "EE", 2, 2, 0}, {6 * s, "SSSSSSSS", 10, 2, 0}, {17 * s, "", 0, 0, 0},
	})
	c := window.NewCallsAt(window.CallsConfig{Span: 10 * time.Millisecond, Buckets: 10}, t0)
	replay(t, c, []callStep{{0, "ESS", 3, 1, 0}, {60 * 24 * time.Hour, "ES", 2, 1, 0}})
	require.Equal(t, window.Totals{Successes: 3, Failures: 2}, c.Totals())
}

// Scenario B80.
func TestTheClockStepsBack(t *testing.T) {
	for _, back := range []time.Duration{10 * time.Millisecond, 5 * time.Second, time.Hour} {
		at := 30 * time.Second
		replay(t, window.NewCallsAt(window.CallsConfig{Span: 10 * time.Second}, t0), []callStep{
			{at, "EES", 3, 2, 0},
			{at - back, "", 3, 2, 0},  // the window keeps its counts
			{at - back, "S", 4, 2, 0}, // and counts more
			{at + 9*time.Second, "S", 5, 2, 0},
			{at + 10*time.Second, "", 1, 0, 0}, // and ages as usual
		})
	}
}
