package breaker_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/breaker"
)

// One call per minute closes the breaker of a recovered service, even if HalfOpenTimeout is shorter
// and the breaker was evicted meanwhile.
func TestGroupProbesAfterACooldownHoweverRareCallsAre(t *testing.T) {
	g := newEvictableGroup(2, breaker.Config{Recovery: breaker.Off, ConsecutiveFailures: 3, HalfOpenTimeout: 10 * time.Second, Probes: 1})
	old := g.GetAt(t0, "a")
	evictAll(g, t0)
	refused := 0
	for minute := range 100 {
		u := after(time.Duration(minute) * time.Minute)
		o := breaker.Success
		if minute == 0 { // one bad minute, and only successes afterwards
			o = breaker.Failure
		}
		for range 3 {
			p, err := old.AllowAt(u)
			if err != nil {
				refused++
				continue
			}
			p.RecordAt(u, o)
		}
		addKeys(g, u, 10)
	}
	require.Zero(t, refused)
	require.NotEmpty(t, g.Stats().Evictions)
}

// A group in the state Shadow reports what a real group does, also for calls of evicted breakers.
func TestGroupInShadowReportsWhatARealGroupDoes(t *testing.T) {
	c := breaker.Config{ConsecutiveFailures: 3, Cooldown: 2 * time.Minute, Probes: 1}
	live := newEvictableGroup(3, c)
	c.Initial = breaker.Shadow
	var told recorder
	shadow := newEvictableGroup(3, told.attachTo(c))
	a, b := live.GetAt(t0, "a"), shadow.GetAt(t0, "a")
	refused := int64(0)
	for minute := range 60 {
		u := after(time.Duration(minute) * time.Minute)
		o := breaker.Failure
		if minute%20 > 10 {
			o = breaker.Success
		}
		for i := range 4 {
			p, err := a.AllowAt(u)
			q, none := b.AllowAt(u)
			require.NoError(t, none)
			// the new keys evict a, while its first call of the minute is in flight
			addKeys(live, u, 6)
			addKeys(shadow, u, 6)
			if err != nil {
				refused++
			} else {
				p.RecordAt(u, o)
			}
			q.RecordAt(u, o)
			require.Equal(t, a.StateAt(u) == breaker.Open, shadowIsOpen(&told, u), "minute %d, call %d", minute, i)
		}
	}
	require.Positive(t, refused)
	require.Positive(t, live.Stats().Evictions)
}

// shadowIsOpen reports whether the breaker of the key a would be open if it were not in shadow
// mode. That is so if it would have opened and the cooldown after that is not over.
func shadowIsOpen(told *recorder, u time.Time) bool {
	for _, c := range slices.Backward(told.changes()) {
		if c.Key == "a" {
			return u.Sub(c.At) < 2*time.Minute
		}
	}
	return false
}

// A cancelled call is ignored, whatever its error is.
func TestGroupIgnoresAFailureOfACancelledCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := breaker.NewGroup[string]("g", breaker.GroupConfig{MaxKeys: 2, MaxSeries: breaker.Off, Breaker: breaker.Config{ConsecutiveFailures: 1}})
		old := g.Get("a")
		time.Sleep(time.Minute)
		evictAll(g, time.Now())
		for _, b := range []*breaker.Breaker{old, g.Get("a")} {
			ctx, cancel := context.WithCancel(t.Context())
			_ = b.Run(ctx, func(context.Context) error {
				cancel()
				return errors.New("rpc error: code = Canceled")
			})
		}
		require.Equal(t, breaker.Closed, g.Get("a").State())
		require.EqualValues(t, 2, g.Get("a").Totals().Ignored)
	})
}
