package scenario

import (
	"time"

	"github.com/weir-go/weir/dev/proving/internal/sim"
)

// lostCapacity: most servers disappear, and no call fails because of an error.
func lostCapacity() Scenario {
	return Scenario{
		Name:  "lost-capacity",
		Title: "Capacity falls to 25–30 %",
		Text: "200 calls per second use half of the capacity. Then 70 to 75 % of the servers are gone for 40 s, and " +
			"nothing else is wrong: calls fail because they wait too long or because the queue is full. The service " +
			"can still answer more than half of what is offered. A guard that refuses all calls throws that away, " +
			"and a guard that refuses nothing lets callers wait for answers that come too late.",
		World: func(d sim.Draw) sim.World {
			w := steadyWorld(d, 200, 0.5)
			addFault(&w, d.AboutTime(40*time.Second), sim.Fault{Capacity: d.Between(0.25, 0.30)})
			return w
		},
		Shown: []Column{goodMeanwhile, failed, refusedMeanwhile, wasted, medianWait, openings, backAfter},
		Goals: lostCapacityGoals(),
		Quick: true,
	}
}
