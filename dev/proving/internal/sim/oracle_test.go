package sim_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/dev/proving/internal/guards"
	"github.com/weir-go/weir/dev/proving/internal/sim"
)

// simpleWorlds returns worlds with one kind of trouble, whose parameters are drawn.
func simpleWorlds(seed uint64) map[string]sim.World {
	d := sim.NewDraw(seed)
	trouble := sim.Span{From: 5 * time.Second, To: 5*time.Second + d.AboutTime(5*time.Second)}
	world := func(servers int, faults ...sim.Fault) sim.World {
		for i := range faults {
			faults[i].Span = trouble
		}
		return sim.World{
			Service: sim.Service{Servers: servers, Time: sim.Exponential(50 * time.Millisecond), Queue: 300},
			Faults:  faults,
			Clients: []sim.Client{{Rate: d.About(200), Timeout: time.Second}},
			For:     16 * time.Second,
			Trouble: trouble,
		}
	}
	badHost := world(4, sim.Fault{Slower: 20, Host: 3})
	badHost.Service.Hosts = 10
	hurried := world(12)
	hurried.Clients[0].HurriedShare, hurried.Clients[0].Hurried = 0.5, 20*time.Millisecond
	retries := world(14, sim.Fault{Capacity: 0.3})
	retries.Clients[0].Retries, retries.Clients[0].Backoff = 3, 200*time.Millisecond
	return map[string]sim.World{
		"good day":  world(20),
		"overload":  world(8),
		"capacity":  world(20, sim.Fault{Capacity: d.Between(0.2, 0.5)}),
		"hang":      world(20, sim.Fault{Slower: 20}),
		"outage":    world(20, sim.Fault{Down: true}),
		"errors":    world(20, sim.Fault{ErrorRate: 0.3}),
		"flapping":  world(20, sim.Fault{Down: true, Period: 4 * time.Second}),
		"bad host":  badHost,
		"deadlines": hurried,
		"retries":   retries,
	}
}

// makers returns the main guards, or all of them in make test-long.
func makers() []sim.Maker {
	if sim.Long {
		return guards.All()
	}
	return guards.Quick()
}

// No guard is better than the one that sees the service. The oracle does not know which calls will
// fail and when a fault will begin, so luck may give another guard a few calls more.
func TestNoGuardAnswersMoreThanTheOracle(t *testing.T) {
	seeds := uint64(2)
	if !sim.Long {
		seeds = 1
	}
	best, all := map[string]int{}, map[string]map[string]int{}
	for seed := range seeds {
		for name, w := range simpleWorlds(seed) {
			if !sim.Long && !slices.Contains([]string{"overload", "capacity", "outage", "retries"}, name) {
				continue // make test-long tries all of them
			}
			best[name] += sim.Run(w, sim.Oracle(), seed).Good
			if all[name] == nil {
				all[name] = map[string]int{}
			}
			for _, m := range append(makers(), sim.None()) {
				all[name][m.Name] += sim.Run(w, m, seed).Good
			}
		}
	}
	for name, rows := range all {
		for guard, good := range rows {
			require.LessOrEqual(t, float64(good), 1.005*float64(best[name]), "%s: %s", name, guard)
		}
	}
}
