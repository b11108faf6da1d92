package sim_test

import (
	"testing"
	"time"

	"github.com/weir-go/weir/dev/proving/internal/sim"
)

func BenchmarkRun(b *testing.B) {
	world := sim.World{
		Service: sim.Service{Servers: 20, Time: sim.Exponential(50 * time.Millisecond), Queue: 100},
		Faults:  []sim.Fault{{Span: sim.Span{From: 40 * time.Second, To: 60 * time.Second}, Capacity: 0.25}},
		Clients: []sim.Client{{Rate: 200, Timeout: time.Second}},
		For:     150 * time.Second,
		Trouble: sim.Span{From: 40 * time.Second, To: 60 * time.Second},
	}
	for _, m := range []sim.Maker{sim.None(), sim.Oracle()} {
		b.Run(m.Name, func(b *testing.B) {
			calls := 0
			seed := uint64(0)
			for b.Loop() {
				seed++
				calls += sim.Run(world, m, seed).Offered
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(calls), "ns/call")
		})
	}
}
