package fleet_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/fleet"
)

// A refund of tokens that have returned by themselves would give back tokens of other requests.
func TestALateRefundGivesBackOnlyWhatStillCounts(t *testing.T) {
	l := connect(t)
	for name, limit := range tenPerSecond {
		t.Run(name, func(t *testing.T) {
			b := newLimiter(l, "late "+name, limit, fleet.Config{OnOutage: fleet.FailError, MaxDenied: fleet.Off})
			take := func(at time.Duration, n int) int {
				r, err := b.TakeAt(t.Context(), testStart.Add(at), "user", n)
				require.NoError(t, err)
				if !r.OK {
					return 0
				}
				return n
			}
			back := func(at, age time.Duration, n int) {
				require.NoError(t, b.GiveBackAged(t.Context(), testStart.Add(at), age, "user", n))
			}
			const soon, late = 5 * ms, 3 * time.Second
			require.Equal(t, 10, take(0, 10))
			back(soon, soon, 10)
			require.GreaterOrEqual(t, take(soon, 9), 9, "tokens that still count are given back")
			require.Equal(t, 10, take(late, 10), "all tokens have returned by themselves")
			back(late, late-soon, 9)
			require.Zero(t, take(late, 1), "none of the ten was given back")
			back(late, 0, 1)
			require.Equal(t, 1, take(late, 1), "one was")
			require.Zero(t, take(late, 1))
		})
	}
}

func TestRefundMeasuresHowLongAgoItWas(t *testing.T) {
	b := newLimiter(connect(t), "ago", fleet.SlidingLog{Limit: 1, Window: time.Minute}, errorOnOutage)
	take := func() bool {
		r, err := b.Take(t.Context(), "user", 1)
		require.NoError(t, err)
		return r.OK
	}
	back := func(at time.Time) { require.NoError(t, b.Refund(t.Context(), at, "user", 1)) }
	require.True(t, take())
	back(time.Now().Add(-time.Minute))
	require.False(t, take())
	back(time.Now())
	require.True(t, take())
	back(time.Now().Add(time.Hour)) // a time to come is now
	require.True(t, take())
	back(time.Time{})
	require.False(t, take())
}

func TestALateRefundWhileRedisIsUnavailable(t *testing.T) {
	_, l := unavailableLink(t)
	b := newLimiter(l, "away", fleet.FixedWindow{Limit: 10, Window: time.Hour}, fleet.Config{OnOutage: fleet.FailLocal, Share: 1})
	requireTake(t, fleet.Result{Result: taken.Result, From: fleet.FromOutage}, b.Take, "user", 10)
	require.ErrorIs(t, b.Refund(t.Context(), time.Now().Add(-2*time.Hour), "user", 10), fleet.ErrUnavailable)
	requireTake(t, fleet.Result{From: fleet.FromOutage}, b.Take, "user", 1)
	require.ErrorIs(t, b.Refund(t.Context(), time.Now().Add(-time.Minute), "user", 10), fleet.ErrUnavailable)
	requireTake(t, fleet.Result{Result: taken.Result, From: fleet.FromOutage}, b.Take, "user", 9)
}

// A lease is given back some time after it was taken. Tokens that have returned by themselves
// meanwhile are not given back again.
func TestALeaseThatIsGivenBackLateGivesBackOnlyWhatStillCounts(t *testing.T) {
	t.Parallel()
	const limit, span = 100, 2 * time.Second
	l := connect(t)
	for name, kind := range map[string]fleet.Limit{
		"fixed": fleet.FixedWindow{Limit: limit, Window: span}, "sliding": fleet.SlidingWindow{Limit: limit, Window: span},
		"log": fleet.SlidingLog{Limit: limit, Window: span},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			leased := newLimiter(l, "late lease "+name, kind, fleet.Config{OnOutage: fleet.FailError, MaxLease: 10})
			plain := newLimiter(l, "late lease "+name, kind, errorOnOutage)
			for from := fleet.FromServer; from != fleet.FromLease; {
				r, err := leased.Take(t.Context(), "user", 1)
				require.NoError(t, err)
				from = r.From
			}
			// until all has come back, and then the beginning of a window
			waitFor(span + span/10 + 20*ms)
			at := time.Now()
			waitFor(at.Truncate(span).Add(span + 5*ms).Sub(at))
			requireTake(t, taken, plain.Take, "user", limit)
			require.NoError(t, leased.Close(t.Context()))
			requireTake(t, refused, plain.Take, "user", 1)
		})
	}
}
