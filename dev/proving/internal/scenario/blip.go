package scenario

import (
	"time"

	"github.com/weir-go/weir/dev/proving/internal/sim"
)

// blip: a short outage, in which every call is tried four times.
func blip() Scenario {
	return Scenario{
		Name:  "blip",
		Title: "Blip with retries",
		Text: "The service fails for 2 to 12 s, at 200 calls per second and 80 % of the capacity. Callers retry three " +
			"times, after 100, 200 and 400 ms on average. Retries save calls at the edges of the blip, and they are " +
			"five times the load afterwards. A guard should not make a short trouble longer.",
		World: func(d sim.Draw) sim.World {
			w := steadyWorld(d, 200, 0.8)
			w.Clients[0].Retries = 3
			w.Clients[0].Backoff = d.AboutTime(100 * time.Millisecond)
			addFault(&w, seconds(d.Between(2, 12)), sim.Fault{Down: true})
			return w
		},
		Shown: []Column{good, failed, refused, sentMeanwhile, backAfter, openings},
		Goals: []Goal{
			timesBest("good calls ≥ 99 % of the best", good, 0.99),
			atMost("back within 2 s", backAfter, 2),
		},
		Quick: true,
	}
}
