package scenario

import (
	"time"

	"github.com/weir-go/weir/dev/proving/internal/sim"
)

// coldCache: the service is back, and slow until it has seen enough calls.
func coldCache() Scenario {
	return Scenario{
		Name:  "cold-cache",
		Title: "Cold cache after an outage",
		Text: "The service fails for 20 s, at 150 calls per second and half of the capacity. Then its cache is empty: the " +
			"first call takes eight times as long, and each call that is served warms the cache a little, until 2,000 " +
			"were served. A service that gets too many calls answers none and stays cold. The figures cover the 30 s " +
			"after the outage.",
		World: func(d sim.Draw) sim.World {
			w := steadyWorld(d, 150, 0.5)
			addFault(&w, d.AboutTime(20*time.Second), sim.Fault{Down: true, Cold: d.About(8), ColdCalls: int(d.About(2000))})
			// The figures cover the time in which the cache is cold, not the outage.
			w.Trouble = sim.Span{From: w.Trouble.To, To: w.Trouble.To + 30*time.Second}
			w.For = w.Trouble.To + after
			return w
		},
		Shown: []Column{goodMeanwhile, failedMeanwhile, refusedMeanwhile, wasted, openings, goodAfter},
	}
}
