package scenario

import (
	"time"

	"github.com/weir-go/weir/dev/proving/internal/sim"
)

// comeBack: after an outage the service returns with few of its servers.
func comeBack() Scenario {
	return Scenario{
		Name:  "return",
		Title: "Return at 20–25 % capacity",
		Text: "A service that took 240 of 300 calls per second fails for 20 s, and then has a fifth to a quarter of its " +
			"servers for 60 s: new instances start one after the other. All figures cover these 60 s. A guard that " +
			"lets all calls through at once stops the service again.",
		World: func(d sim.Draw) sim.World {
			w := steadyWorld(d, 240, 0.8)
			addComeBack(d, &w)
			return w
		},
		Shown: []Column{goodMeanwhile, failed, refusedMeanwhile, wasted, reopenings, backAfter},
		Goals: comeBackGoals(),
		Quick: true,
	}
}

// addComeBack adds an outage of about 20 s to the world, followed by about 60 s with few servers.
func addComeBack(d sim.Draw, w *sim.World) {
	addFault(w, d.AboutTime(20*time.Second), sim.Fault{Down: true})
	back := sim.Span{From: w.Trouble.To, To: w.Trouble.To + d.AboutTime(time.Minute)}
	w.Faults = append(w.Faults, sim.Fault{Span: back, Capacity: d.Between(0.20, 0.25)})
	w.Trouble = back
	w.For = back.To + after
}
