package guards_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/dev/proving/internal/guards"
	"github.com/weir-go/weir/dev/proving/internal/sim"
)

// budgetAlone is the row that refuses no first call.
const budgetAlone = "retry budget alone"

// While the service is down for all calls, 10 per second, each is retried three times.
func TestARetryBudgetBoundsWhatIsSent(t *testing.T) {
	world := sim.World{
		Service: sim.Service{Servers: 100, Time: sim.Constant(10 * time.Millisecond), Queue: 100},
		Clients: []sim.Client{{Rate: 10, Timeout: time.Second, Retries: 3, Backoff: 100 * time.Millisecond}},
		For:     100 * time.Second,
	}
	world.Trouble = sim.Span{From: 0, To: world.For - time.Second}
	world.Faults = []sim.Fault{{Span: world.Trouble, ErrorRate: 1}}
	all := guards.All()
	maker := all[slices.IndexFunc(all, func(m sim.Maker) bool { return m.Name == budgetAlone })]
	storm, bounded := sim.Run(world, sim.None(), 1), sim.Run(world, maker, 1)
	require.Greater(t, storm.SentMeanwhile, 3*storm.OfferedMeanwhile)
	require.LessOrEqual(t, float64(bounded.SentMeanwhile), 1.1*float64(bounded.OfferedMeanwhile)+10)
	require.Greater(t, float64(bounded.SentMeanwhile), 1.05*float64(bounded.OfferedMeanwhile), "retries are made")
}
