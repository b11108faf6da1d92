package scenario

import (
	"time"

	"github.com/weir-go/weir/dev/proving/internal/sim"
)

// Two failures of Go programs that are public.

// drainedQuota: an adaptive quota of retries that is never refilled.
func drainedQuota() Scenario {
	return Scenario{
		Name:  "drained-quota",
		Title: "A drained quota",
		Text: "aws-sdk-go-v2#3550: in the retry mode \"adaptive\" an outage drains the quota of retries, and no success " +
			"refills it. Here the service fails for a minute, and is well for ten minutes afterwards, but for 3 % of the " +
			"calls, which one retry would save. Whatever a guard has learned in the outage, it should forget. The " +
			"figures named meanwhile cover the outage.",
		World: func(d sim.Draw) sim.World {
			w := steadyWorld(d, 50, 0.5)
			w.Service.ErrorRate = d.About(0.03)
			w.Clients[0].Retries = 2
			w.Clients[0].Backoff = d.AboutTime(100 * time.Millisecond)
			addFault(&w, d.AboutTime(time.Minute), sim.Fault{Down: true})
			w.For = w.Trouble.To + 10*time.Minute
			return w
		},
		Shown: []Column{goodAfter, sentMeanwhile, failed, refused, openings, backAfter},
	}
}

// decayedStreak: failures so far apart that a streak in a rolling window never grows.
func decayedStreak() Scenario {
	return Scenario{
		Name:  "decayed-streak",
		Title: "A streak that decays",
		Text: "solace-broker-mcp#296: each call of a slow outage runs into its timeout of 19 s, and the next one starts " +
			"then. The program's breaker counted consecutive failures in a rolling window of 30 s, so its count stayed " +
			"at two and never reached five. Here the service answers nothing for 20 minutes.",
		World: func(d sim.Draw) sim.World {
			timeout := d.AboutTime(19 * time.Second)
			down := sim.Span{From: 5 * time.Minute, To: 5*time.Minute + d.AboutTime(20*time.Minute)}
			return sim.World{
				Service: newService(d, 20, 300*time.Millisecond, sim.Exponential),
				Clients: []sim.Client{{Users: 1, Think: d.AboutTime(2 * time.Second), Timeout: timeout}},
				Faults:  []sim.Fault{{Span: down, Capacity: sim.NoCapacity}},
				Trouble: down,
				For:     down.To + 10*time.Minute,
			}
		},
		Shown: []Column{badSent, openings, sentMeanwhile, goodAfter, backAfter},
	}
}
