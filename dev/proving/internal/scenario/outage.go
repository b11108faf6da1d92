package scenario

import (
	"time"

	"github.com/weir-go/weir/dev/proving/internal/sim"
)

// outage: the service is gone, and answers so at once.
func outage() Scenario {
	return Scenario{
		Name:  "outage",
		Title: "Total outage",
		Text: "All calls fail at once for 20 s, at 150 calls per second. Breakers were invented for this: few calls " +
			"should be sent meanwhile, and all should be good again afterwards.",
		World: func(d sim.Draw) sim.World {
			w := steadyWorld(d, 150, 0.5)
			addFault(&w, d.AboutTime(20*time.Second), sim.Fault{Down: true})
			return w
		},
		Shown: []Column{sentMeanwhile, goodAfter, failed, protectedAfter, backAfter, openings},
		Goals: []Goal{
			forBothConfigs(timesBestPeer("calls sent ≤ 1.05 × the best peer's", sentMeanwhile, 1.05)),
			forBothConfigs(timesBest("good calls afterwards ≥ 95 % of the best", goodAfter, 0.95)),
			forBothConfigs(atMost("one opening", openings, 1)),
		},
		Quick: true,
	}
}
