package scenario

import (
	"time"

	"github.com/weir-go/weir/dev/proving/internal/sim"
)

// hang: every call takes 20 times as long.
func hang() Scenario {
	return Scenario{
		Name:  "hang",
		Title: "Hang: 20 × slower",
		Text: "All calls that begin within 20 s take 20 times as long, at 200 calls per second and half of the " +
			"capacity. Most of them time out, and the queue is full of calls whose callers have gone.",
		World: func(d sim.Draw) sim.World {
			w := steadyWorld(d, 200, 0.5)
			addFault(&w, d.AboutTime(20*time.Second), sim.Fault{Slower: d.About(20)})
			return w
		},
		Shown: []Column{good, failed, refused, protectedAfter, backAfter, wasted, openings},
		Goals: []Goal{
			timesBestPeer("failures seen ≤ 1.1 × the best peer's", failed, 1.1),
			timesBest("good calls ≥ 95 % of the best", good, 0.95),
			atMost("back within 1 s of the end", backAfter, 1),
		},
		Quick: true,
	}
}
