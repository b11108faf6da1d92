package scenario

import (
	"time"

	"github.com/weir-go/weir/dev/proving/internal/sim"
)

// abandonedQueue: the service works on calls whose callers have gone.
func abandonedQueue() Scenario {
	return Scenario{
		Name:  "abandoned-queue",
		Title: "A queue that callers have given up on",
		Text: "The service has a long queue and serves calls in order, also those whose callers have left. It hangs " +
			"for 5 s at 200 calls per second and 90 % of the capacity. Afterwards it is as fast as before, but works " +
			"only on calls that have timed out. Without a guard, this can last for minutes. The figures meanwhile speak " +
			"of the 60 s after the hang.",
		World: func(d sim.Draw) sim.World {
			w := steadyWorld(d, 200, 0.9)
			w.Service.Queue = 100 * w.Service.Servers
			addFault(&w, d.AboutTime(5*time.Second), sim.Fault{Capacity: sim.NoCapacity})
			w.Trouble = sim.Span{From: w.Trouble.To, To: w.Trouble.To + time.Minute}
			w.For = w.Trouble.To + after
			return w
		},
		Shown: []Column{goodMeanwhile, failedMeanwhile, refusedMeanwhile, wasted, goodAfter, openings},
	}
}
