package sim_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/dev/proving/internal/sim"
)

func TestCallsAndAttemptsAreConserved(t *testing.T) {
	world := sim.World{
		Service: sim.Service{Servers: 4, Time: sim.Exponential(50 * time.Millisecond), Queue: 20, ErrorRate: 0.1},
		Faults:  []sim.Fault{{Span: sim.Span{From: 10 * time.Second, To: 20 * time.Second}, Slower: 5}},
		Clients: []sim.Client{{Rate: 60, Timeout: 300 * time.Millisecond, Retries: 2, Backoff: 100 * time.Millisecond}},
		For:     40 * time.Second,
		Warmup:  2500 * time.Millisecond,
		Trouble: sim.Span{From: 10 * time.Second, To: 20 * time.Second},
	}
	for _, maker := range []sim.Maker{sim.None(), sim.Oracle()} {
		f := sim.Run(world, maker, 1)
		require.Positive(t, f.Good)
		require.Equal(t, f.Offered, f.Good+f.Failed+f.Refused)
		require.Equal(t, f.OfferedMeanwhile, f.GoodMeanwhile+f.FailedMeanwhile+f.RefusedMeanwhile)
		require.Equal(t, f.Sent, f.Answered+f.Erroneous+f.Abandoned)
		var sum sim.Second
		for _, s := range f.Series {
			sum.Offered += s.Offered
			sum.Good += s.Good
			sum.Failed += s.Failed
			sum.Refused += s.Refused
			sum.Sent += s.Sent
		}
		require.Equal(t, sim.Second{f.Offered, f.Good, f.Failed, f.Refused, f.Sent}, sum)
		require.Len(t, f.Series, 40)
	}
}
