package window_test

import (
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/window"
)

// FuzzLast compares a window over the last calls with a plain list of them.
func FuzzLast(f *testing.F) {
	f.Add(uint8(4), []byte{0, 1, 2, 3, 4, 5, 6, 7, 0, 0, 1})
	f.Fuzz(func(t *testing.T, size uint8, ops []byte) {
		n := int(size)%20 + 1
		c := window.NewCalls(window.CallsConfig{Last: n, Slow: 10})
		var list []byte
		for _, op := range ops {
			switch op % 4 {
			case 2, 3:
				c.Record(window.Ignored, 0)
			default:
				list = append(list, op)
				c.Record(window.Outcome(op%4), timeNearThreshold(op))
			}
			requireLast(t, list[max(0, len(list)-n):], c.Counts())
			requireLast(t, list, window.Counts(c.Totals()))
		}
	})
}

// timeNearThreshold returns a time at the threshold or just above.
func timeNearThreshold(op byte) time.Duration { return 10 + time.Duration(op/4%2) }

func requireLast(t *testing.T, list []byte, got window.Counts) {
	t.Helper()
	var want window.Counts
	for _, op := range list {
		slow := int64(op / 4 % 2)
		want.Slow += slow
		if op%4 == 0 {
			want.Successes++
		} else {
			want.Failures++
			want.SlowFailures += slow
		}
	}
	got.Ignored, got.ConsecutiveFailures = 0, 0
	require.Equal(t, want, got)
}

func TestLastCountsRefusalsSinceTheOldestCall(t *testing.T) {
	c := window.NewCalls(window.CallsConfig{Last: 2})
	c.Refuse()
	c.Record(window.Success, 0)
	c.Refuse()
	c.Record(window.Success, 0)
	c.Record(window.Ignored, 0)
	require.Equal(t, window.Counts{Successes: 2, Ignored: 1, Refused: 2}, c.Counts())
	// the first call leaves the window, and so does the refusal before it
	c.Record(window.Success, 0)
	require.Equal(t, window.Counts{Successes: 2, Ignored: 1, Refused: 1}, c.Counts())
	require.Equal(t, int64(2), c.Totals().Refused)
}

func TestLastUnderManyWriters(t *testing.T) {
	const writers, calls, size = 8, 5000, 100
	c := window.NewCalls(window.CallsConfig{Last: size})
	var wg sync.WaitGroup
	for i := range writers {
		wg.Go(func() {
			rnd := rand.New(rand.NewPCG(2, uint64(i)))
			for range calls {
				c.Record(window.Outcome(rnd.IntN(2)), 0)
				if n := c.Counts().Calls(); n < 1 || n > size {
					t.Errorf("%d calls in a window of %d", n, size)
					return
				}
			}
		})
	}
	wg.Wait()
	require.Equal(t, int64(writers*calls), c.Totals().Calls())
	require.Equal(t, int64(size), c.Counts().Calls())
}

func TestNewCallsPanicsOnAnInvalidLast(t *testing.T) {
	for want, c := range map[string]window.CallsConfig{
		"window: Last is -1, must lie between 1 and 100000, or 0 for a window over time":     {Last: -1},
		"window: Last is 100001, must lie between 1 and 100000, or 0 for a window over time": {Last: 100_001},
		"window: Span is 1ns and Buckets is 0, must both be 0 if Last is set":                {Last: 1, Span: 1},
		"window: Span is 0s and Buckets is 3, must both be 0 if Last is set":                 {Last: 1, Buckets: 3},
		"window: Latency is true, must be false if Last is set":                              {Last: 1, Latency: true},
	} {
		require.EqualError(t, c.Validate(), want)
	}
	require.NoError(t, window.CallsConfig{Last: window.MaxLast}.Validate())
}

// Scenario B39.
func TestTheLastFourCalls(t *testing.T) {
	replay(t, window.NewCalls(window.CallsConfig{Last: 4, Slow: slowThreshold}), []callStep{
		{0, "E", 1, 1, 0}, {0, "S", 2, 1, 0}, {0, "S", 3, 1, 0}, {0, "S", 4, 1, 0}, {0, "S", 4, 0, 0},
	})
}

// Scenario B40.
func TestSlowOnesOfTheLastTwo(t *testing.T) {
	c := window.NewCalls(window.CallsConfig{Last: 2, Slow: slowThreshold})
	replay(t, c, []callStep{{0, "e", 1, 1, 1}})
	require.Equal(t, int64(1), c.Counts().SlowFailures)
	replay(t, c, []callStep{{0, "s", 2, 1, 2}, {0, "S", 2, 0, 1}, {0, "S", 2, 0, 0}})
	require.Equal(t, window.Totals{Successes: 3, Failures: 1, Slow: 2, SlowFailures: 1}, c.Totals())
}
