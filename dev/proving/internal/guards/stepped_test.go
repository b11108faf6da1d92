package guards_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/dev/proving/internal/guards"
	"github.com/weir-go/weir/dev/proving/internal/sim"
)

// whole is a guard without its method Begin, so that a goroutine makes each attempt.
type whole struct{ sim.Guard }

// A call in two steps, which is faster to simulate, is what the function around the call does.
func TestTwoStepsAreTheSameAsTheWhole(t *testing.T) {
	steps := 0
	for _, m := range append(guards.All(), guards.Sought()...) {
		if m.Draws {
			continue
		}
		inWhole := m
		inWhole.New = func(s sim.Setting) sim.Guard {
			g := m.New(s)
			if _, ok := g.(sim.Stepped); !ok {
				return g
			}
			steps++
			return whole{g}
		}
		w := fleet()
		w.Clients[0].Retries = 1
		require.Equal(t, sim.Run(w, inWhole, 7), sim.Run(w, m, 7), m.Name)
	}
	require.Greater(t, steps, 5)
}
