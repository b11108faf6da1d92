package scenario

import (
	"time"

	"github.com/weir-go/weir/dev/proving/internal/sim"
)

// hopelessDeadlines: some callers give the service too little time. Their failures say nothing
// about the service.
func hopelessDeadlines() Scenario {
	return Scenario{
		Name:  "hopeless-deadlines",
		Title: "Hopeless deadlines",
		Text: "30 to 65 % of the callers allow 10 ms to a service that needs 50. Their calls always fail. The other " +
			"callers get good answers, and none of them should be refused.",
		World: func(d sim.Draw) sim.World {
			w := steadyWorld(d, 100, 0.3)
			w.Service = newService(d, w.Clients[0].Rate/0.3, 50*time.Millisecond, lognormal(0.15))
			w.Clients[0].HurriedShare = d.Between(0.30, 0.65)
			w.Clients[0].Hurried = 10 * time.Millisecond
			w.For = 100 * time.Second
			return w
		},
		Shown: []Column{unhurriedRefused, good, failed, refused, openings},
		Goals: []Goal{forBothConfigs(atMost("no other caller refused", unhurriedRefused, 0))},
	}
}

// hopelessHang: deadlines of callers are the only sign that the service hangs.
func hopelessHang() Scenario {
	return Scenario{
		Name:  "deadlines-in-a-hang",
		Title: "A hang that only deadlines show",
		Text: "The service answers nothing for 20 s, and has no timeout of its own: each call ends by the deadline of its " +
			"caller, and a tenth of the callers are hurried. A guard that takes every deadline for the caller's own fault " +
			"never opens.",
		World: func(d sim.Draw) sim.World {
			w := steadyWorld(d, 100, 0.3)
			w.Clients[0].HurriedShare = d.About(0.1)
			w.Clients[0].Hurried = 10 * time.Millisecond
			addFault(&w, d.AboutTime(20*time.Second), sim.Fault{Capacity: sim.NoCapacity})
			return w
		},
		Shown: []Column{sentMeanwhile, openings, protectedAfter, backAfter, goodAfter},
		Goals: []Goal{forBothConfigs(atLeast("the breaker opens", openings, 1))},
	}
}
