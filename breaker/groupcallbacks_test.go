package breaker_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/stat"
)

// groupVerbs are the methods of a group that may cause a transition of the key "a", whose cooldown
// is over.
var groupVerbs = map[string]func(g *breaker.Group[string], c breaker.Config){
	"Reconfigure": func(g *breaker.Group[string], c breaker.Config) {
		c.Force = breaker.ForcedOpen
		_ = g.Reconfigure(breaker.GroupConfig{Breaker: c})
	},
	"force all":   func(g *breaker.Group[string], _ breaker.Config) { g.ForceAll(breaker.Shadow) },
	"release all": func(g *breaker.Group[string], _ breaker.Config) { g.ForceAll(breaker.Shadow); g.ReleaseAll() },
	"reset all":   func(g *breaker.Group[string], _ breaker.Config) { g.ResetAll() },
	"Get and Run": func(g *breaker.Group[string], _ breaker.Config) { _ = g.Get("a").Run(bg(), succeed) },
}

// callEverything calls the methods of a group and of a breaker.
func callEverything(g *breaker.Group[string], key string, c breaker.Config) {
	b := g.Get(key)
	_, _, _ = b.State(), b.Tripped(), b.Counts()
	g.Get("new")
	for _, b := range g.All() {
		_ = b.State()
	}
	for range g.Observe {
	}
	g.Histograms(func(*stat.Series, stat.Histogram) bool { return true })
	c.MinCalls = 7
	_ = g.Reconfigure(breaker.GroupConfig{Breaker: c, MaxOpen: 0.5})
	g.ForceAll(breaker.Disabled)
	g.ReleaseAll()
	g.ResetAll()
	g.Forget("new")
	b.OpenFor(time.Minute)
	b.Reset()
	g.Forget(key)
}

func TestOnChangeMayCallEveryMethodOfItsGroup(t *testing.T) {
	for name, verb := range groupVerbs {
		t.Run(name, func(t *testing.T) {
			var g *breaker.Group[string]
			var c breaker.Config
			var called atomic.Int32
			called.Store(10) // not yet
			c.OnChange = func(change breaker.Change) {
				if called.Add(1) <= 3 {
					callEverything(g, change.Key, c)
				}
			}
			g = breaker.NewGroup[string]("g", breaker.GroupConfig{Breaker: c})
			g.Get("a").OpenFor(0)
			called.Store(0)
			requireReturns(t, func() { verb(g, c) })
			require.Positive(t, called.Load())
			requireReturns(t, func() { callEverything(g, "a", c) })
		})
	}
}

func requireReturns(t *testing.T, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); f() }()
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		require.Fail(t, "it hangs")
	}
}

// While OnChange runs for one key, calls of other keys go on, and so do all methods of the group.
func TestASlowOnChangeDelaysNoOtherKey(t *testing.T) {
	for name, verb := range groupVerbs {
		t.Run(name, func(t *testing.T) {
			var c breaker.Config
			var slow atomic.Bool
			began, end, done := make(chan bool), make(chan bool), make(chan bool)
			c.OnChange = func(change breaker.Change) {
				if change.Key == "a" && slow.CompareAndSwap(true, false) {
					close(began)
					<-end
				}
			}
			g := breaker.NewGroup[string]("g", breaker.GroupConfig{Breaker: c})
			g.Get("a").OpenFor(0)
			slow.Store(true)
			go func() { defer close(done); verb(g, c) }()
			requireReturns(t, func() {
				<-began
				callEverything(g, "b", c)
				callEverything(g, "a", c)
			})
			close(end)
			<-done
		})
	}
}
