package weir_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/limiter"
)

// TestOnChangeMayReconfigureItsGroup lets each verb that may end the cooldown of a key cause a
// transition whose OnChange calls the group.
func TestOnChangeMayReconfigureItsGroup(t *testing.T) {
	c := weir.Config{Rate: limiter.PerSecond(100), MaxConcurrent: 5}
	for name, verb := range map[string]func(g *weir.Group[string], c weir.Config){
		"Reconfigure": func(g *weir.Group[string], c weir.Config) { _ = g.Reconfigure(c) },
		"Forget":      func(g *weir.Group[string], _ weir.Config) { g.Forget("k") },
	} {
		t.Run(name, func(t *testing.T) {
			var group *weir.Group[string]
			called := make(chan bool, 100)
			c := c
			c.Breaker.OnChange = func(ch breaker.Change) {
				if ch.To == breaker.HalfOpen && len(called) == 0 {
					called <- true
					other := c
					other.Rate, other.Breaker.MinCalls = limiter.PerSecond(10), 7
					_ = group.Reconfigure(other)
					group.Get("other").Hold(time.Millisecond)
					group.Forget("other")
				}
			}
			group = weir.NewGroup[string]("g", weir.GroupConfig{Gate: c})
			group.Get("k").Breaker().OpenFor(0)
			done := make(chan struct{})
			go func() {
				defer close(done)
				verb(group, c)
				_ = group.Get("k").Run(t.Context(), func(context.Context) error { return nil })
				group.Get("new")
			}()
			select {
			case <-done:
			case <-time.After(10 * time.Second):
				require.Fail(t, "it hangs")
			}
			require.Len(t, called, 1)
		})
	}
}

// However Reconfigure is called at the same time, or by OnChange while it is under way, all parts
// have the config of the same call in the end.
func TestReconfigureInOnChangeIsTheLaterOne(t *testing.T) {
	var group *weir.Group[string]
	inner := weir.Config{Rate: limiter.PerSecond(10), Breaker: breaker.Config{ConsecutiveFailures: 2}}
	outer := weir.Config{Rate: limiter.PerSecond(20), Breaker: breaker.Config{ConsecutiveFailures: 3}}
	outer.Breaker.OnChange = func(ch breaker.Change) {
		if ch.To == breaker.HalfOpen {
			require.NoError(t, group.Reconfigure(inner))
		}
	}
	group = weir.NewGroup[string]("g", weir.GroupConfig{Gate: outer})
	group.Get("k").Breaker().OpenFor(0)
	require.NoError(t, group.Reconfigure(outer))
	b := group.Get("new").Breaker()
	for range 2 {
		require.Equal(t, breaker.Closed, b.State())
		_ = b.Run(t.Context(), func(context.Context) error { return context.DeadlineExceeded })
	}
	require.Equal(t, breaker.Open, b.State(), "the breakers have the config of OnChange")
}
