package scenario

import (
	"time"

	"github.com/weir-go/weir/dev/proving/internal/sim"
)

// fleetLostCapacity: every process sees only a fiftieth of the trouble.
func fleetLostCapacity() Scenario {
	return Scenario{
		Name:  "fleet-lost-capacity",
		Title: "A fleet of 50: capacity falls",
		Text: "50 processes with a guard each make 200 calls per second together, of about 300 ms, so one or two are in " +
			"flight in each. Capacity falls to 25–30 % for 40 s. A bound on calls in flight cannot go below one.",
		World: func(d sim.Draw) sim.World {
			w := fleetWorld(d, 200, 0.5)
			addFault(&w, d.AboutTime(40*time.Second), sim.Fault{Capacity: d.Between(0.25, 0.30)})
			return w
		},
		Shown: []Column{goodMeanwhile, failed, refusedMeanwhile, wasted, reopenings, backAfter},
		Goals: lostCapacityGoals(),
	}
}

// fleetComeBack: every process may send a little too much, and all together far too much.
func fleetComeBack() Scenario {
	return Scenario{
		Name:  "fleet-return",
		Title: "A fleet of 50: return",
		Text: "The same fleet at 80 % of the capacity. The service fails for 20 s, and returns with a fifth to a quarter " +
			"of its servers for 60 s. Openings are those of all processes.",
		World: func(d sim.Draw) sim.World {
			w := fleetWorld(d, 200, 0.8)
			addComeBack(d, &w)
			return w
		},
		Shown: []Column{goodMeanwhile, failed, refusedMeanwhile, wasted, reopenings, backAfter},
		Goals: fleetComeBackGoals(),
	}
}

// fleetSize is the number of processes.
const fleetSize = 50

func fleetWorld(d sim.Draw, rate, load float64) sim.World {
	w := steadyWorld(d, rate, load)
	w.Service = newService(d, w.Clients[0].Rate/load, 300*time.Millisecond, sim.Exponential)
	w.Clients[0].Processes = fleetSize
	w.Clients[0].Timeout = d.AboutTime(3 * time.Second)
	return w
}

// fleetComeBackGoals are the goals of a single process. The bound on openings holds per process.
func fleetComeBackGoals() []Goal {
	goals := comeBackGoals()
	goals[2] = atMost("at most 2 openings meanwhile per process", reopenings, 2*fleetSize)
	return goals
}
