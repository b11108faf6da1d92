package guards_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/dev/proving/internal/guards"
	"github.com/weir-go/weir/dev/proving/internal/sim"
)

// fleet is a world of two processes and a service that is down for a while.
func fleet() sim.World {
	down := sim.Span{From: 15 * time.Second, To: 30 * time.Second}
	return sim.World{
		Service: sim.Service{Servers: 8, Time: sim.Exponential(30 * time.Millisecond), Queue: 20},
		Faults:  []sim.Fault{{Span: down, Down: true}},
		Clients: []sim.Client{{Processes: 2, Rate: 100, Timeout: time.Second}},
		For:     45 * time.Second, Trouble: down,
	}
}

// Random numbers that are seeded by the clock are the same in each run with the same seed.
func TestTheSameSeedGivesTheSameFigures(t *testing.T) {
	for _, m := range guards.All() {
		t.Run(m.Name, func(t *testing.T) {
			first := sim.Run(fleet(), m, 7)
			if !m.Draws {
				require.Equal(t, first, sim.Run(fleet(), m, 7))
			}
			if !isLimiter(m) && m.Name != budgetAlone {
				require.Less(t, first.SentMeanwhile, first.OfferedMeanwhile)
			}
			require.Greater(t, first.Good, first.OfferedAfter/2)
		})
	}
}

// Guards that use the random numbers of the whole process show different figures in each run with
// the same seed. These figures differ from run to run by no more than the figures of ten seeds
// differ.
func TestFiguresOfOneSeedDifferLessThanThoseOfTen(t *testing.T) {
	for _, m := range guards.All() {
		if !m.Draws {
			continue
		}
		t.Run(m.Name, func(t *testing.T) {
			var seeds []sim.Figures
			for seed := range uint64(10) {
				seeds = append(seeds, sim.Run(fleet(), m, seed))
			}
			again := sim.Run(fleet(), m, 7)
			for name, of := range map[string]func(sim.Figures) float64{
				"good": func(f sim.Figures) float64 { return float64(f.Good) / float64(f.Offered) },
				"sent": func(f sim.Figures) float64 { return float64(f.SentMeanwhile) / float64(f.OfferedMeanwhile) },
			} {
				low, high := 1.0, 0.0
				for _, f := range seeds {
					low, high = min(low, of(f)), max(high, of(f))
				}
				require.LessOrEqual(t, of(again), high+(high-low), name)
				require.GreaterOrEqual(t, of(again), low-(high-low), name)
			}
		})
	}
}
