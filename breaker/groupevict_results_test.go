package breaker_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/internal/instrument"
)

// The result of a call that began before its breaker was evicted counts for the breaker that the
// key has when the call ends.
func TestGroupCountsTheResultOfACallThatOutlivesItsBreaker(t *testing.T) {
	g := newEvictableGroup(2, breaker.Config{MinCalls: 2})
	old := g.GetAt(t0, "a")
	first, _ := old.AllowAt(t0)
	second, _ := old.AllowAt(t0)
	u := after(time.Minute)
	evictAll(g, u)
	require.True(t, first.RecordAt(u, breaker.Failure))
	now := g.GetAt(u, "a")
	require.NotSame(t, old, now)
	require.EqualValues(t, 1, now.CountsAt(u).Failures)
	require.True(t, second.RecordAt(u, breaker.Failure))
	require.Equal(t, breaker.Open, now.StateAt(u))
	require.Equal(t, breaker.Open, old.StateAt(u), "the evicted breaker reports the state of its successor")
	require.False(t, second.RecordAt(u, breaker.Failure), "once")
}

// A result that was late before the eviction is late for the breaker that the key has now.
func TestGroupCountsALateResultOfAnEvictedBreakerAsLate(t *testing.T) {
	g := newEvictableGroup(2, breaker.Config{})
	b := g.GetAt(t0, "a")
	old, _ := b.AllowAt(t0)
	other, _ := b.AllowAt(t0)
	b.OpenForAt(t0, 0)
	b.ResetAt(t0)
	u := after(time.Minute)
	evictAll(g, u)
	require.False(t, old.RecordAt(u, breaker.Failure))
	require.Equal(t, breaker.AllStats{State: breaker.Closed, Since: u, Late: 1}, g.GetAt(u, "a").StatsAt(u))

	fresh, _ := b.AllowAt(u)
	b.OpenForAt(u, time.Hour)
	require.False(t, other.RecordAt(u, breaker.Failure))
	require.False(t, fresh.RecordAt(u, breaker.Failure))
	require.EqualValues(t, 3, g.GetAt(u, "a").StatsAt(u).Late)
}

// A cancelled call through an evicted breaker is ignored.
func TestGroupIgnoresACancelledCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := breaker.NewGroup[string]("g", breaker.GroupConfig{MaxKeys: 2, MaxSeries: breaker.Off, Breaker: breaker.Config{ConsecutiveFailures: 1}})
		old := g.Get("a")
		time.Sleep(time.Minute)
		evictAll(g, time.Now())
		for range 3 {
			ctx, cancel := context.WithCancel(t.Context())
			_ = old.Run(ctx, func(ctx context.Context) error {
				cancel()
				return ctx.Err()
			})
		}
		require.Equal(t, breaker.Closed, g.Get("a").State())
		require.EqualValues(t, 3, g.Get("a").Totals().Ignored)
	})
}

// The counts of a member stay in the sums of the group when it is evicted.
func TestGroupLosesNoCallToAnEviction(t *testing.T) {
	g := newEvictableGroup(3, breaker.Config{})
	old := g.GetAt(t0, "a")
	for i := range 50 {
		u := after(time.Duration(i) * time.Minute)
		p, err := old.AllowAt(u)
		require.NoError(t, err)
		evictAll(g, u)
		require.True(t, p.RecordAt(u, breaker.Outcome(i%3)))
	}
	calls := 0.0
	for s, v := range g.Observe {
		if s.Instrument == instrument.BreakerCalls {
			calls += v
		}
	}
	require.InDelta(t, 50, calls, 0)
}

// A result is late if the breaker that the key has now has opened and closed since the call began,
// also in the state Shadow.
func TestGroupCountsNoResultFromBeforeTheBreakerOpened(t *testing.T) {
	for _, initial := range []breaker.State{breaker.Closed, breaker.Shadow} {
		t.Run(string(initial), func(t *testing.T) {
			g := newEvictableGroup(2, breaker.Config{Recovery: breaker.Off, MinCalls: 1, Probes: 1, Initial: initial})
			b := g.GetAt(t0, "a")
			old, err := b.AllowAt(t0)
			require.NoError(t, err)
			u := after(time.Minute)
			evictAll(g, u)
			makeKeyCall(t, g, u, "a", breaker.Failure)
			u = u.Add(5 * time.Second)
			makeKeyCall(t, g, u, "a", breaker.Success) // the probe
			require.Equal(t, initial, b.StateAt(u))
			counted := old.RecordAt(u, breaker.Failure)
			require.Equal(t, initial == breaker.Shadow, counted, "a shadow goes on, but not for its shadow")
			require.Equal(t, initial, b.StateAt(u))
			if initial == breaker.Shadow {
				require.EqualValues(t, 1, b.StatsAt(u).ShadowOpened)
				return
			}
			require.Zero(t, b.CountsAt(u).Failures)
			require.EqualValues(t, 1, b.StatsAt(u).Late)
		})
	}
}
