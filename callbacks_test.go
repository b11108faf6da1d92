package weir_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/stat"
	"github.com/weir-go/weir/window"
)

// callbacks are the functions of the program that a gate and a group call.
var callbacks = []string{
	"Classify", "Trip", "SharedCounts", "Trace", "DescribeFailure", "OnChange", "Remote", "fn", "fallback", "judge", "String",
	"yield of Observe", "yield of Histograms", "yield of All", "yield of the group's Observe", "yield of the group's Histograms",
}

// callingKey is a key whose text is made by a function.
type callingKey struct {
	name string
	text *func()
}

func (k callingKey) String() string {
	(*k.text)()
	return k.name
}

// guarded is a group, a joined gate with a remote, and their config.
type guarded struct {
	group  *weir.Group[callingKey]
	joined *weir.Gate
	config weir.Config
	keys   []callingKey
}

// useCallbacks makes a group and a joined gate whose callbacks call in with their names, and uses
// them in a way that calls each of them.
func useCallbacks(in func(callback string, g *guarded)) {
	g := &guarded{}
	call := func(callback string) bool { in(callback, g); return true }
	b := breaker.Config{Latency: true, KeepFailures: 3}
	b.Classify = func(err error) breaker.Outcome { call("Classify"); return breaker.DefaultClassify(err) }
	b.Trip = func(window.Counts) (string, bool) { call("Trip"); return "", false }
	b.SharedCounts = func() window.Counts { call("SharedCounts"); return window.Counts{} }
	b.Trace = func(context.Context) (trace, span string) { call("Trace"); return "a", "b" }
	b.DescribeFailure = func(context.Context, error, *breaker.FailedCall) { call("DescribeFailure") }
	b.OnChange = func(breaker.Change) { call("OnChange") }
	g.config = weir.Config{Rate: limiter.PerSecond(100), MaxConcurrent: 5, Adaptive: true, RefuseHopeless: true, Breaker: b}
	g.group = weir.NewGroup[callingKey]("g", weir.GroupConfig{Gate: g.config, ShowKeys: true})
	r := newRemote(1000)
	r.during = func() { call("Remote") }
	g.joined = weir.Join("joined", weir.Parts{Breaker: breaker.New("joined", b), Remote: r})
	text := func() { call("String") }
	g.keys = []callingKey{{"a", &text}, {"b", &text}}

	_ = g.joined.Run(bg(), succeed)
	gate := g.group.Get(g.keys[0])
	_ = gate.Run(bg(), func(context.Context) error { call("fn"); return errUnreachable })
	_ = gate.Run(bg(), succeed)
	_, _ = weir.DoResult(bg(), gate, func(context.Context) (int, error) { return 1, nil }, func(int, error) breaker.Outcome {
		call("judge")
		return breaker.Success
	})
	gate.Observe(func(*stat.Series, float64) bool { return call("yield of Observe") })
	gate.Histograms(func(*stat.Series, stat.Histogram) bool { return call("yield of Histograms") })
	g.group.All()(func(callingKey, *weir.Gate) bool { return call("yield of All") })
	g.group.Observe(func(*stat.Series, float64) bool { return call("yield of the group's Observe") })
	g.group.Histograms(func(*stat.Series, stat.Histogram) bool { return call("yield of the group's Histograms") })
	gate.Hold(time.Second)
	_, _ = weir.DoOr(bg(), gate, func(context.Context) (int, error) { return 1, nil }, func(context.Context, error) (int, error) {
		call("fallback")
		return 0, nil
	})
	gate.Breaker().OpenFor(time.Minute)
}

// useEverything calls the methods of the group and the gates.
func useEverything(g *guarded) {
	for _, gate := range []*weir.Gate{g.joined, g.group.Get(g.keys[0]), g.group.Get(g.keys[1])} {
		_ = gate.Run(bg(), func(context.Context) error { return errUnreachable })
		if permit, err := gate.Allow(bg()); err == nil {
			permit.Done(bg(), nil)
		}
		if permit, refund, err := gate.Reserve(bg()); err == nil {
			permit.Record(breaker.Ignored)
			refund()
		}
		_, _, _, _ = gate.Admissions(), gate.Explain(), gate.Latency(), gate.LifetimeLatency()
		_, _, _, _ = gate.Totals(), gate.Tripped(), gate.Limiter(), gate.Name()
		gate.Observe(func(*stat.Series, float64) bool { return true })
		gate.Histograms(func(*stat.Series, stat.Histogram) bool { return true })
		gate.Breaker().OpenFor(0)
		gate.Hold(time.Millisecond)
		_ = gate.Run(bg(), succeed) // refused
		_ = gate.Reconfigure(g.config)
	}
	_, _, _ = g.group.Admissions(), g.group.Busiest(3), g.group.Len()
	g.group.Observe(func(*stat.Series, float64) bool { return true })
	g.group.Histograms(func(*stat.Series, stat.Histogram) bool { return true })
	for range g.group.All() {
	}
	_ = g.group.SetMaxOpen(0.5)
	_ = g.group.Reconfigure(g.config)
	for _, key := range g.keys {
		g.group.Forget(key)
	}
}

// A lock that is held during a callback would block it for ever.
func TestCallbacksMayCallTheGateAndTheGroup(t *testing.T) {
	for _, active := range callbacks {
		t.Run(active, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				inside, seen := false, 0
				useCallbacks(func(callback string, g *guarded) {
					if callback != active || inside || seen >= 3 {
						return
					}
					inside = true
					useEverything(g)
					inside = false
					seen++
				})
				require.Positive(t, seen)
			})
		})
	}
}

// While a callback runs, calls of its key and of others go on, and so do all methods.
func TestASlowCallbackDelaysNoOtherCall(t *testing.T) {
	for _, active := range callbacks {
		t.Run(active, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var began atomic.Bool
				end, running := make(chan struct{}), make(chan *guarded, 1)
				go useCallbacks(func(callback string, g *guarded) {
					if callback == active && began.CompareAndSwap(false, true) {
						running <- g
						<-end
					}
				})
				g := <-running
				start := time.Now()
				useEverything(g)
				require.Equal(t, start, time.Now())
				close(end)
			})
		})
	}
}
