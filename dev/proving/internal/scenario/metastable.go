package scenario

import (
	"time"

	"github.com/weir-go/weir/dev/proving/internal/sim"
)

// metastable: retries keep a failure alive after its cause has gone.
func metastable() Scenario {
	return Scenario{
		Name:  "metastable",
		Title: "A failure that survives its trigger",
		Text: "200 calls per second use 70 % of the capacity, and callers retry three times. A surge doubles the calls for " +
			"10 s. Calls time out, retries multiply the load by up to four, and so the overload remains when the surge " +
			"has gone: a metastable failure (Bronson et al., HotOS 2021). Figures named meanwhile cover the 60 s after " +
			"the surge, in which the service could answer all calls. A retry budget ends the overload even without a " +
			"breaker, because retries then add at most a tenth to the load: see the row retry budget alone.",
		World: func(d sim.Draw) sim.World {
			w := steadyWorld(d, 200, 0.7)
			c := &w.Clients[0]
			c.Retries = 3
			c.Backoff = d.AboutTime(100 * time.Millisecond)
			surge := sim.Span{From: lead, To: lead + d.AboutTime(10*time.Second)}
			c.Surge = []sim.Surge{{Span: surge, Times: 2}}
			w.Service.Queue = 30 * w.Service.Servers
			w.Trouble = sim.Span{From: surge.To, To: surge.To + time.Minute}
			w.For = w.Trouble.To + after
			return w
		},
		Shown: []Column{goodMeanwhile, failedMeanwhile, refusedMeanwhile, sentMeanwhile, wasted, goodAfter, openings},
	}
}
