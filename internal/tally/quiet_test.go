package tally_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/tally"
)

// quiet says what a good call is told.
func quiet(c *tally.Calls, at time.Duration) bool {
	_, quiet := c.Record(at, tally.Success, 0)
	return quiet
}

func TestQuietUntilAFailureOrASlowCall(t *testing.T) {
	quietUntilBad(t, func(*tally.Calls) {})
	quietUntilBad(t, func(c *tally.Calls) {
		c.Share(false)
		c.Spread()
	})
}

func quietUntilBad(t *testing.T, prepare func(*tally.Calls)) {
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
		prepare(c)
		for _, at := range []time.Duration{0, time.Minute} {
			require.True(t, quiet(c, at), name)
			_, calm := c.Record(at, bad.verdict, bad.took)
			require.False(t, calm, "%s: it is bad itself", name)
			require.False(t, quiet(c, at), name)
			judged, slowed := c.Hush(at, tally.Pair{}, tally.Pair{})
			require.Equal(t, bad.judged.Low+2, judged.Low, name)
			require.Equal(t, bad.judged.High, judged.High, name)
			require.Equal(t, bad.slowed, slowed, name)
			require.False(t, quiet(c, at), "%s: it is in the window", name)
			c.Hush(at+20*time.Second, tally.Pair{}, tally.Pair{})
			require.True(t, quiet(c, at+20*time.Second), "%s: it has left the window", name)
		}
	}
}

func TestABadCallIsNotQuietWhereOneWasHushedBefore(t *testing.T) {
	for _, bad := range []struct {
		verdict tally.Verdict
		took    time.Duration
	}{{tally.Failure, 0}, {tally.Success, slow + 1}, {tally.Failure, slow + 1}} {
		c := tally.New(time.Second, 10, slow)
		c.Share(false)
		c.Spread()
		c.Record(0, tally.Failure, slow+1)
		c.Hush(20*time.Second, tally.Pair{}, tally.Pair{})
		_, calm := c.Record(20*time.Second, bad.verdict, bad.took)
		require.False(t, calm, "%v", bad)
	}
}

func TestAWindowOverCallsIsNeverQuiet(t *testing.T) {
	c := tally.NewLast(4, slow)
	require.False(t, quiet(c, 0))
	c.Record(0, tally.Success, slow+1)
	judged, slowed := c.Hush(0, tally.Pair{}, tally.Pair{})
	require.Equal(t, tally.Pair{Low: 2}, judged)
	require.Equal(t, tally.Pair{Low: 1}, slowed)
	require.False(t, quiet(c, 0))
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
