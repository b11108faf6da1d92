package breaker_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/internal/instrument"
)

// A key is kept while its calls are in flight, so that their results count, for up to an hour after
// it was last used: then the permits are taken to be forgotten.
func TestGroupKeepsAKeyWithCallsInFlight(t *testing.T) {
	g := newEvictableGroup(2, breaker.Config{MinCalls: 2})
	b := g.GetAt(t0, "a")
	first, _ := b.AllowAt(t0)
	second, _ := b.AllowAt(t0)
	u := after(59 * time.Minute)
	addKeys(g, u, 20)
	require.Same(t, b, g.GetAt(u, "a"))
	require.True(t, first.RecordAt(u, breaker.Failure))
	require.True(t, second.RecordAt(u, breaker.Failure))
	require.Equal(t, breaker.Open, g.GetAt(u, "a").StateAt(u))
	require.False(t, second.RecordAt(u, breaker.Failure), "once")
}

// A permit that was forgotten does not keep its key for ever.
func TestGroupEvictsAKeyWhosePermitWasForgotten(t *testing.T) {
	g := newEvictableGroup(1, breaker.Config{})
	_, _ = g.GetAt(t0, "a").AllowAt(t0)
	addKeys(g, t0, 1)
	addKeys(g, after(time.Hour-1), 1)
	require.Zero(t, g.Stats().Evictions)
	addKeys(g, after(time.Hour+time.Second), 1)
	require.EqualValues(t, 1, g.Stats().Evictions)
}

// A call in flight when its key is forgotten counts for the old breaker.
func TestGroupCountsNoCallForAKeyThatWasForgottenSince(t *testing.T) {
	g := newEvictableGroup(2, breaker.Config{MinCalls: 1})
	b := g.GetAt(t0, "a")
	p, _ := b.AllowAt(t0)
	require.True(t, g.Forget("a"))
	require.True(t, p.RecordAt(t0, breaker.Failure))
	require.Equal(t, breaker.Open, b.StateAt(t0))
	require.Zero(t, g.GetAt(t0, "a").Totals())
}

// The counts of a member stay in the sums of the group when it is evicted.
func TestGroupLosesNoCallToAnEviction(t *testing.T) {
	g := newEvictableGroup(3, breaker.Config{})
	for i := range 50 {
		u := after(time.Duration(i) * time.Minute)
		makeKeyCall(t, g, u, "a", breaker.Outcome(i%3))
		evictAll(g, u.Add(30*time.Second))
	}
	calls := 0.0
	for s, v := range g.Observe {
		if s.Instrument == instrument.BreakerCalls {
			calls += v
		}
	}
	require.InDelta(t, 50, calls, 0)
}

// A member counts its calls in flight, whatever becomes of them.
func TestAMemberCountsItsCallsInFlight(t *testing.T) {
	b := breaker.NewGroup[int]("g", breaker.GroupConfig{Breaker: breaker.Config{ConsecutiveFailures: 1, Cooldown: breaker.Off}}).Get(1)
	requireActive := func(want int64) {
		t.Helper()
		require.Equal(t, want, b.StatsNow().Active)
	}
	requireActive(0)
	first, err := b.Allow()
	require.NoError(t, err)
	second, err := b.Allow()
	require.NoError(t, err)
	requireActive(2)
	require.True(t, first.Record(bg(), nil, breaker.Failure)) // opens it
	require.False(t, first.Record(bg(), nil, breaker.Failure))
	requireActive(1)
	probe, err := b.Allow()
	require.NoError(t, err)
	requireActive(2)
	require.False(t, second.Record(bg(), nil, breaker.Success), "is late")
	requireActive(1)
	require.Panics(t, func() { _ = b.Run(bg(), func(ctx) error { panic("x") }) })
	probe.Record(bg(), nil, breaker.Success)
	requireActive(0)
}
