package sim_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/dev/proving/internal/sim"
)

// Ten servers end 200 calls of 50 ms per second, which are 40 % of those that are made.
func TestInformedKeepsServersBusyAndWaitsShort(t *testing.T) {
	w := sim.World{
		Service: sim.Service{Servers: 10, Time: sim.Exponential(50 * time.Millisecond), Queue: 1000},
		Clients: []sim.Client{{Rate: 500, Timeout: time.Second}},
		For:     20 * time.Second,
	}
	f := sim.Run(w, sim.Informed(), 1)
	require.InDelta(t, 0.40, float64(f.Good)/float64(f.Offered), 0.02)
	require.Zero(t, f.Failed)
	require.Less(t, f.Wait, 200*time.Millisecond, "the median of a full queue of ten is about 100 ms")
	require.Greater(t, f.Wait, 60*time.Millisecond)

	clairvoyant := sim.Run(w, sim.Oracle(), 1)
	require.Greater(t, clairvoyant.Good, f.Good*5/4, "it prefers short calls")
}

func TestInformedRefusesWhileTheServiceIsDown(t *testing.T) {
	w := sim.World{
		Service: sim.Service{Servers: 10, Time: sim.Constant(50 * time.Millisecond), Queue: 100},
		Clients: []sim.Client{{Rate: 100, Timeout: time.Second}},
		Faults:  []sim.Fault{{Span: sim.Span{To: 5 * time.Second}, Down: true}},
		For:     10 * time.Second,
	}
	f := sim.Run(w, sim.Informed(), 1)
	require.InDelta(t, 0.5, float64(f.Refused)/float64(f.Offered), 0.05)
	require.Zero(t, f.Failed)
}
