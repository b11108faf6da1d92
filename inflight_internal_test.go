package weir

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/inflight"
)

// A key is forgotten between the moment at which a call looks for the gate of the key and the
// moment at which it has a slot of that gate. The call returns that slot and takes one of the gate
// that the key has now, so that the key never has more calls than its bound.
func TestACallThatTookASlotOfAForgottenKeyTakesANewOne(t *testing.T) {
	for name, take := range map[string]func(g *Gate, forget func()) (slot, bool){
		"at once": func(g *Gate, forget func()) (slot, bool) {
			return g.setup.Load().takeSlot(func(l *inflight.Limiter) (time.Duration, bool, bool) {
				start, held, ok := slotHooks.Occupy(l)
				forget()
				return start, held, ok
			})
		},
		"after a wait": func(g *Gate, forget func()) (slot, bool) {
			wait := slotHooks.Wait
			defer func() { slotHooks.Wait = wait }()
			slotHooks.Wait = func(ctx context.Context, l *inflight.Limiter, maxWait time.Duration) (time.Duration, bool, error) {
				start, held, err := wait(ctx, l, maxWait)
				forget()
				return start, held, err
			}
			s, err := g.setup.Load().waitForSlot(t.Context(), g.now().Add(time.Minute))
			return s, err == nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			group := NewGroup[string]("g", GroupConfig{Gate: Config{MaxConcurrent: 1}})
			old := group.Get("a")
			forgotten := 0
			s, ok := take(old, func() {
				if forgotten++; forgotten == 1 {
					require.True(t, group.Forget("a"))
					group.Get("a")
				}
			})
			require.True(t, ok)
			require.Equal(t, 2, forgotten, "slots that the call took")
			require.Same(t, group.Get("a"), s.gate.Gate)
			require.Zero(t, old.setup.Load().inFlight.InFlight())
			require.Equal(t, 1, s.gate.inFlight.InFlight())
			s.release()
			require.Zero(t, s.gate.inFlight.InFlight())
		})
	}
}
