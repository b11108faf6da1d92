package scenario

import (
	"math"
	"time"

	"github.com/weir-go/weir/dev/proving/internal/sim"
)

// flapping: the service fails half of the time.
func flapping() Scenario {
	return Scenario{
		Name:  "flapping",
		Title: "Flapping",
		Text: "The service fails in one half of each period and is well in the other. Periods are 2 to 60 s long, one per " +
			"seed. A guard that waits long before it tries again misses the good halves.",
		World: func(d sim.Draw) sim.World {
			w := steadyWorld(d, 100, 0.5)
			period := 2 * math.Pow(30, d.Float64())
			addFault(&w, 2*time.Minute, sim.Fault{Down: true, Period: seconds(period)})
			return w
		},
		Shown: []Column{goodMeanwhile, failedMeanwhile, refusedMeanwhile, sentMeanwhile, openings, backAfter},
		Goals: []Goal{peersWithinTwoPoints()},
	}
}

// badHost: one of ten hosts behind the same name fails all its calls.
func badHost() Scenario {
	return Scenario{
		Name:  "bad-host",
		Title: "One bad host of ten",
		Text: "A load balancer sends each call to one of ten hosts at random. One of them fails all its calls for a " +
			"minute, which is a tenth of all calls. The guard does not see hosts.",
		World: func(d sim.Draw) sim.World {
			w := steadyWorld(d, 200, 0.5)
			w.Service = newService(d, w.Clients[0].Rate/0.5/10, 50*time.Millisecond, sim.Exponential)
			w.Service.Hosts = 10
			w.Service.Queue = 10 * w.Service.Servers
			addFault(&w, d.AboutTime(time.Minute), sim.Fault{Down: true, Host: 1})
			return w
		},
		Shown: []Column{goodMeanwhile, failedMeanwhile, refusedMeanwhile, openings},
		Goals: []Goal{peersWithinTwoPoints()},
	}
}

// peersWithinTwoPoints bounds the good calls by those of the best peer, less 2 % of the calls.
func peersWithinTwoPoints() Goal {
	return Goal{
		Text: "good calls ≥ the best peer's − 2 %", Figure: goodMeanwhile,
		Bound: func(rs Rows) float64 { return orNoBound(rs.bestPeer(goodMeanwhile)-2, goodMeanwhile) },
	}
}
