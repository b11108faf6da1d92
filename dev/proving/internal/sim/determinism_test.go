package sim_test

import (
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/dev/proving/internal/sim"
)

// busyWorld is a world in which much happens at once.
func busyWorld() sim.World {
	s := time.Second
	return sim.World{
		Service: sim.Service{
			Servers: 4, Time: sim.Lognormal(50*time.Millisecond, 1), Queue: 50, Hosts: 3, ErrorRate: 0.05,
			RetryAfter: 2 * s,
		},
		Faults: []sim.Fault{
			{Span: sim.Span{From: 5 * s, To: 10 * s}, Capacity: 0.25},
			{Span: sim.Span{From: 12 * s, To: 15 * s}, Down: true, Period: s, Cold: 5, ColdCalls: 200},
		},
		Clients: []sim.Client{
			{
				Rate: 120, Processes: 3, Timeout: s, HurriedShare: 0.2, Hurried: 50 * time.Millisecond,
				Retries: 2, Backoff: 100 * time.Millisecond, Budget: 0.1, ObeysRetryAfter: true,
			},
			{Users: 30, Think: 200 * time.Millisecond, Timeout: s, Suspended: sim.Span{From: 11 * s, To: 14 * s}},
		},
		For:     25 * s,
		Warmup:  s,
		Trouble: sim.Span{From: 5 * s, To: 15 * s},
	}
}

func TestTheSameSeedGivesTheSameFigures(t *testing.T) {
	before := runtime.GOMAXPROCS(0)
	defer runtime.GOMAXPROCS(before)
	for _, maker := range append(makers(), sim.None(), sim.Oracle()) {
		if maker.Draws {
			continue
		}
		first := sim.Run(busyWorld(), maker, 1)
		require.NotEqual(t, first, sim.Run(busyWorld(), maker, 2))
		times := 5
		if testing.Short() || !sim.Long {
			times = 1
		}
		for _, processors := range []int{1, 2} {
			runtime.GOMAXPROCS(processors)
			for range times {
				require.Equal(t, first, sim.Run(busyWorld(), maker, 1), maker.Name)
			}
		}
	}
}

func TestRunsInParallelDoNotMeet(t *testing.T) {
	alone := sim.Run(busyWorld(), sim.None(), 1)
	var group sync.WaitGroup
	together := make([]sim.Figures, 4)
	for i := range together {
		group.Go(func() { together[i] = sim.Run(busyWorld(), sim.None(), 1) })
	}
	group.Wait()
	for _, f := range together {
		require.Equal(t, alone, f)
	}
}
