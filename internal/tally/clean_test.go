package tally_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/cusum"
	"github.com/weir-go/weir/internal/tally"
)

// recordSuccess records a fast success and returns whether the window is clean.
func recordSuccess(c *tally.Calls, at time.Duration) (clean bool) {
	_, clean = c.Record(at, tally.Success, 0)
	return clean
}

// requireCleanOnceJudged records the first success of a bucket, which its caller has to judge, and
// requires that a window without bad calls is clean from then on.
func requireCleanOnceJudged(t *testing.T, c *tally.Calls, at time.Duration, name string) {
	t.Helper()
	before := c.Totals()
	require.False(t, recordSuccess(c, at), "%s: the first call of a bucket", name)
	require.False(t, recordSuccess(c, at), "%s: it was not judged", name)
	c.RatesAndMarkClean(at, &before, new(cusum.Counter))
	require.True(t, recordSuccess(c, at), name)
}

func TestCleanUntilAFailureOrASlowCall(t *testing.T) {
	for name, bad := range map[string]struct {
		outcome     tally.Outcome
		took        time.Duration
		calls, slow tally.Pair
	}{
		"failure":   {tally.Failure, 0, tally.Pair{Calls: 5, Failures: 1}, tally.Pair{}},
		"slow call": {tally.Success, slowDuration + 1, tally.Pair{Calls: 5}, tally.Pair{Calls: 1}},
		"both":      {tally.Failure, slowDuration + 1, tally.Pair{Calls: 5, Failures: 1}, tally.Pair{Calls: 1, Failures: 1}},
	} {
		for _, striped := range []bool{false, true} {
			c := tally.New(time.Second, 10, slowDuration)
			if striped {
				c.Stripe()
			}
			for _, at := range []time.Duration{0, time.Minute} {
				requireCleanOnceJudged(t, c, at, name)
				_, clean := c.Record(at, bad.outcome, bad.took)
				require.False(t, clean, "%s: the bad call itself", name)
				require.False(t, recordSuccess(c, at), name)
				calls, slow := c.RatesAndMarkClean(at, &tally.Counts{}, new(cusum.Counter))
				require.Equal(t, bad.calls, calls, name)
				require.Equal(t, bad.slow, slow, name)
				require.False(t, recordSuccess(c, at), "%s: the bad call is in the window", name)
				recordSuccess(c, at+20*time.Second) // begins a bucket
				c.RatesAndMarkClean(at+20*time.Second, &tally.Counts{}, new(cusum.Counter))
				require.True(t, recordSuccess(c, at+20*time.Second), "%s: the bad call has left the window", name)
			}
		}
	}
}

func TestABadCallIsNotCleanAfterAnEarlierOne(t *testing.T) {
	for _, bad := range []struct {
		outcome tally.Outcome
		took    time.Duration
	}{{tally.Failure, 0}, {tally.Success, slowDuration + 1}, {tally.Failure, slowDuration + 1}} {
		c := tally.New(time.Second, 10, slowDuration)
		c.Record(0, tally.Failure, slowDuration+1)
		c.RatesAndMarkClean(20*time.Second, &tally.Counts{}, new(cusum.Counter))
		_, clean := c.Record(20*time.Second, bad.outcome, bad.took)
		require.False(t, clean, "%v", bad)
	}
}

func TestAWindowOverCallsIsNeverClean(t *testing.T) {
	c := tally.NewLast(4, slowDuration)
	require.False(t, recordSuccess(c, 0))
	c.Record(0, tally.Success, slowDuration+1)
	calls, slows := c.RatesAndMarkClean(0, &tally.Counts{}, new(cusum.Counter))
	require.Equal(t, tally.Pair{Calls: 2}, calls)
	require.Equal(t, tally.Pair{Calls: 1}, slows)
	require.False(t, recordSuccess(c, 0))
}

func TestAnIgnoredCallEndsNoStreak(t *testing.T) {
	for name, c := range map[string]*tally.Calls{"time": tally.New(time.Second, 10, slowDuration), "calls": tally.NewLast(4, slowDuration)} {
		c.Record(0, tally.Failure, 0)
		c.Record(0, tally.Ignored, 0)
		require.EqualValues(t, 1, c.Streak(), name)
	}
}

func TestAStripedSuccessEndsAStreak(t *testing.T) {
	c := tally.New(time.Second, 2, slowDuration)
	c.Stripe()
	streak, _ := c.Record(0, tally.Failure, 0)
	require.EqualValues(t, 1, streak)
	recordSuccess(c, time.Minute)
	require.Zero(t, c.Streak())
}

func TestPlusAddsEveryFigure(t *testing.T) {
	a := tally.Counts{Successes: 1, Failures: 2, Slow: 3, SlowFailures: 4, Ignored: 5, Refused: 6, ConsecutiveFailures: 7}
	want := tally.Counts{Successes: 2, Failures: 4, Slow: 6, SlowFailures: 8, Ignored: 10, Refused: 12, ConsecutiveFailures: 14}
	require.Equal(t, want, a.Plus(a))
}
