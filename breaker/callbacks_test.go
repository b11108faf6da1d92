package breaker_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/stat"
	"github.com/weir-go/weir/window"
)

// callbacks are the functions of the program that a breaker and a group call.
var callbacks = []string{
	"Trip", "SharedCounts", "Classify", "DescribeFailure", "Trace", "OnChange", "yield of All",
	"yield of Observe", "yield of Histograms", "yield of the group's Observe", "yield of the group's Histograms",
}

// useCallbacks makes a group whose callbacks call in with their names, and uses it in a way that
// calls each of them.
func useCallbacks(in func(callback string, g *breaker.Group[string], c breaker.Config)) {
	var g *breaker.Group[string]
	c := breaker.Config{Latency: true, KeepFailures: 3}
	call := func(callback string) bool { in(callback, g, c); return true }
	c.Trip = func(window.Counts) (string, bool) { call("Trip"); return "", false }
	c.SharedCounts = func() window.Counts { call("SharedCounts"); return window.Counts{} }
	c.Classify = func(err error) breaker.Outcome { call("Classify"); return breaker.DefaultClassify(err) }
	c.DescribeFailure = func(context.Context, error, *breaker.FailedCall) { call("DescribeFailure") }
	c.Trace = func(context.Context) (trace, span string) { call("Trace"); return "a", "b" }
	c.OnChange = func(breaker.Change) { call("OnChange") }
	g = breaker.NewGroup[string]("g", breaker.GroupConfig{Breaker: c})
	_ = g.Get("a").Run(bg(), fail)
	_ = g.Get("a").Run(bg(), succeed)
	if permit, err := g.Get("a").Allow(); err == nil {
		permit.Done(bg(), errDown)
	}
	b := g.Get("a")
	g.All()(func(string, *breaker.Breaker) bool { return call("yield of All") })
	b.Observe(func(*stat.Series, float64) bool { return call("yield of Observe") })
	b.Histograms(func(*stat.Series, stat.Histogram) bool { return call("yield of Histograms") })
	g.Observe(func(*stat.Series, float64) bool { return call("yield of the group's Observe") })
	g.Histograms(func(*stat.Series, stat.Histogram) bool { return call("yield of the group's Histograms") })
	b.OpenFor(0)
}

// useEverything calls the methods of a group and its breakers, for a key in use and a new one.
func useEverything(g *breaker.Group[string], c breaker.Config) {
	for _, key := range []string{"a", "b"} {
		b := g.Get(key)
		_ = b.Run(bg(), fail)
		_ = b.Run(bg(), succeed)
		_, _, _, _, _ = b.Explain(), b.Latency(), b.LifetimeLatency(), b.Totals(), g.Len()
		b.Observe(func(*stat.Series, float64) bool { return true })
		b.Histograms(func(*stat.Series, stat.Histogram) bool { return true })
		_ = b.Reconfigure(c)
		b.Force(breaker.Shadow)
		b.Release()
		callEverything(g, key, c)
	}
}

func TestCallbacksMayCallTheGroupAndTheBreaker(t *testing.T) {
	for _, active := range callbacks {
		t.Run(active, func(t *testing.T) {
			var inside atomic.Bool
			seen := 0
			requireReturns(t, func() {
				useCallbacks(func(callback string, g *breaker.Group[string], c breaker.Config) {
					// a result whose member is forgotten goes to the next one, so without end if
					// Trace forgets each of them
					if callback == active && seen < 3 && inside.CompareAndSwap(false, true) {
						seen++
						useEverything(g, c)
						inside.Store(false)
					}
				})
			})
			require.Positive(t, seen)
		})
	}
}

// While a callback runs, calls of its key and of others go on, and so do all methods.
func TestASlowCallbackDelaysNoOtherCall(t *testing.T) {
	for _, active := range callbacks {
		t.Run(active, func(t *testing.T) {
			var began atomic.Bool
			groups, end, done := make(chan func(), 1), make(chan bool), make(chan bool)
			go func() {
				defer close(done)
				useCallbacks(func(callback string, g *breaker.Group[string], c breaker.Config) {
					if callback == active && began.CompareAndSwap(false, true) {
						groups <- func() { useEverything(g, c) }
						<-end
					}
				})
			}()
			requireReturns(t, func() { (<-groups)() })
			close(end)
			<-done
		})
	}
}
