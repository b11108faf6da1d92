package scenario

import (
	"time"

	"github.com/weir-go/weir/dev/proving/internal/sim"
)

// suspended: the process was stopped, and the service was well all the time.
func suspended() Scenario {
	return Scenario{
		Name:  "suspended",
		Title: "A process that was suspended",
		Text: "A process with a hundred calls in flight stops for 30 s, as with SIGSTOP or when its virtual machine is moved. On waking it finds " +
			"answers and timeouts that arrive together. The service was well all the time, so no guard should open.",
		World: func(d sim.Draw) sim.World {
			w := steadyWorld(d, 200, 0.5)
			w.Service = newService(d, w.Clients[0].Rate/0.5, 500*time.Millisecond, sim.Exponential)
			w.Clients[0].Timeout = d.AboutTime(5 * time.Second)
			w.Clients[0].Suspended = sim.Span{From: lead, To: lead + d.AboutTime(30*time.Second)}
			w.For = w.Clients[0].Suspended.To + after
			return w
		},
		Shown: []Column{falseRefusals, good, failed, refused, allOpenings},
		Goals: []Goal{forBothConfigs(atMost("no opening", allOpenings, 0))},
	}
}
