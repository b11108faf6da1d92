package tally_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/tally"
)

func TestQuietUntilAFailureOrASlowCall(t *testing.T) {
	for name, bad := range map[string]struct {
		verdict tally.Verdict
		took    time.Duration
		judged  tally.Pair
		slowed  tally.Pair
	}{
		"failure":   {tally.Failure, 0, tally.Pair{Low: 1, High: 1}, tally.Pair{}},
		"slow call": {tally.Success, slow + 1, tally.Pair{Low: 1}, tally.Pair{Low: 1}},
		"both":      {tally.Failure, slow + 1, tally.Pair{Low: 1, High: 1}, tally.Pair{Low: 1, High: 1}},
	} {
		c := tally.New(time.Second, 10, slow)
		require.True(t, c.Quiet(), name)
		for _, at := range []time.Duration{0, time.Minute} {
			c.Record(at, bad.verdict, bad.took)
			require.False(t, c.Quiet(), name)
			judged, slowed := c.Hush(at, tally.Pair{}, tally.Pair{})
			require.Equal(t, bad.judged, judged, name)
			require.Equal(t, bad.slowed, slowed, name)
			require.False(t, c.Quiet(), "%s: it is in the window", name)
			c.Hush(at+20*time.Second, tally.Pair{}, tally.Pair{})
			require.True(t, c.Quiet(), "%s: it has left the window", name)
			c.Record(at+20*time.Second, tally.Success, 0)
			require.True(t, c.Quiet(), name)
		}
	}
}

func TestAWindowOverCallsIsNeverQuiet(t *testing.T) {
	c := tally.NewLast(4, slow)
	c.Record(0, tally.Success, slow+1)
	judged, slowed := c.Hush(0, tally.Pair{}, tally.Pair{})
	require.Equal(t, tally.Pair{Low: 1}, judged)
	require.Equal(t, tally.Pair{Low: 1}, slowed)
	require.False(t, c.Quiet())
}

func TestAnIgnoredCallEndsNoStreak(t *testing.T) {
	for name, c := range map[string]*tally.Calls{"time": tally.New(time.Second, 10, slow), "calls": tally.NewLast(4, slow)} {
		c.Record(0, tally.Failure, 0)
		c.Record(0, tally.Ignored, 0)
		require.EqualValues(t, 1, c.Streak(), name)
	}
}

func TestPlusAddsEveryFigure(t *testing.T) {
	a := tally.Counts{Successes: 1, Failures: 2, Slow: 3, SlowFailures: 4, Ignored: 5, Refused: 6, ConsecutiveFailures: 7}
	want := tally.Counts{Successes: 2, Failures: 4, Slow: 6, SlowFailures: 8, Ignored: 10, Refused: 12, ConsecutiveFailures: 14}
	require.Equal(t, want, a.Plus(a))
}
