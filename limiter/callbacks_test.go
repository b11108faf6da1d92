package limiter_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/stat"
)

// callingKey is a key whose text is made by a function.
type callingKey struct {
	name string
	text *func()
}

func (k callingKey) String() string {
	(*k.text)()
	return k.name
}

// useCallbacks makes a group whose callbacks call in with their names, and uses it in a way that
// calls each of them.
func useCallbacks(ctx context.Context, in func(callback string, use func())) {
	var g *limiter.Group[callingKey]
	c := limiter.GroupConfig[callingKey]{Rate: limiter.PerSecond(1), Name: "g", ShowKeys: true, Tiers: []limiter.Tier{{Rate: limiter.PerSecond(2)}}}
	var text func()
	a, b := callingKey{"a", &text}, callingKey{"b", &text}
	call := func(callback string) bool {
		in(callback, func() { useGroup(ctx, g, c, a, b) })
		return true
	}
	text = func() { call("String") }
	c.TierOf = func(callingKey) int { call("TierOf"); return 0 }
	g = limiter.NewGroup(c)
	for range 5 {
		g.Get(a).Take(1)
	}
	_ = limiter.WaitAtMost(ctx, g.Get(a), 1, time.Minute)
	g.All()(func(callingKey, limiter.Keyed[callingKey]) bool { return call("yield of All") })
	g.Observe(func(*stat.Series, float64) bool { return call("yield of Observe") })
	g.Histograms(func(*stat.Series, stat.Histogram) bool { return call("yield of Histograms") })
}

// useGroup calls every method of the group for each key.
func useGroup(ctx context.Context, g *limiter.Group[callingKey], c limiter.GroupConfig[callingKey], keys ...callingKey) {
	for _, key := range keys {
		k := g.Get(key)
		for range 5 { // the last is refused
			k.Take(1)
			k.TakeAt(time.Now(), 1)
		}
		limiter.Reserve(k, 1).Refund(1)
		gone, cancel := context.WithCancel(ctx)
		cancel()
		_, _ = k.Wait(gone, 1), limiter.WaitAtMost(gone, k, 1, time.Second)
		k.Hold(time.Millisecond)
		g.All()(func(callingKey, limiter.Keyed[callingKey]) bool { return true })
		g.Observe(func(*stat.Series, float64) bool { return true })
		g.Histograms(func(*stat.Series, stat.Histogram) bool { return true })
		_, _, _, _ = g.Busiest(5), g.Len(), g.Name(), g.Stats()
		_ = g.Reconfigure(c)
		g.Forget(key)
	}
}

var callbacks = []string{"TierOf", "String", "yield of All", "yield of Observe", "yield of Histograms"}

func TestCallbacksMayCallTheGroup(t *testing.T) {
	for _, active := range callbacks {
		synctest.Test(t, func(t *testing.T) {
			inside, seen := false, 0
			useCallbacks(t.Context(), func(callback string, use func()) {
				if callback != active || inside {
					return
				}
				inside = true
				use()
				inside = false
				seen++
			})
			require.Positive(t, seen, active)
		})
	}
}

// While a callback runs for a key, calls for this key and others go on, and so do all methods.
func TestASlowCallbackDelaysNoOtherCall(t *testing.T) {
	for _, active := range callbacks {
		synctest.Test(t, func(t *testing.T) {
			var began atomic.Bool
			end, uses := make(chan struct{}), make(chan func(), 1)
			go useCallbacks(t.Context(), func(callback string, use func()) {
				if callback == active && began.CompareAndSwap(false, true) {
					uses <- use
					<-end
				}
			})
			use := <-uses
			start := time.Now()
			use()
			require.Equal(t, start, time.Now(), active)
			close(end)
			time.Sleep(time.Minute)
		})
	}
}
