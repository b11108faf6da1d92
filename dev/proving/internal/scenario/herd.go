package scenario

import (
	"time"

	"github.com/weir-go/weir/dev/proving/internal/sim"
)

// herdOfRetriers: a thousand callers of one process do what the guard tells them.
func herdOfRetriers() Scenario {
	return Scenario{
		Name:  "herd-of-retriers",
		Title: "A thousand obedient retriers",
		Text: "1,000 calls begin within ten seconds of an outage of 30 s, in one process. Each is retried until it is " +
			"answered, and not before the time that a refusal names. Retries without such a time " +
			"come after a second or two. All calls should be answered soon after the end, and not all at once.",
		World: func(d sim.Draw) sim.World {
			w := steadyWorld(d, 5, 0.1)
			w.Service = newService(d, d.About(1000), 50*time.Millisecond, sim.Exponential)
			addFault(&w, 30*time.Second, sim.Fault{Down: true})
			w.Clients[0].To = w.Trouble.From // its calls are not counted in the figures
			w.Clients = append(w.Clients[:1], sim.Client{
				Rate: 100, From: w.Trouble.To - 15*time.Second, To: w.Trouble.To - 5*time.Second,
				Timeout: time.Second, Retries: 200, Backoff: d.AboutTime(time.Second), ObeysRetryAfter: true,
			})
			return w
		},
		Shown: []Column{medianWait, slowest, crowd, sentMeanwhile, openings},
		Goals: []Goal{forBothConfigs(crowdGoal()), forBothConfigs(waitGoal())},
	}
}

// herdOfBreakers: a thousand processes hear the same Retry-After.
func herdOfBreakers() Scenario {
	return Scenario{
		Name:  "herd-of-breakers",
		Title: "A thousand breakers told the same Retry-After",
		Text: "A service that is down for 20 s says with each failure when it is back. 1,000 processes with a guard each " +
			"call it four times per second, enough for a breaker to open, and their callers obey. The service can take " +
			"them all when the time has come, but not in one moment.",
		World: func(d sim.Draw) sim.World {
			w := sim.World{
				Service: newService(d, d.About(8000), 50*time.Millisecond, sim.Exponential),
				Clients: []sim.Client{{
					Processes: 1000, Rate: 4000, From: lead, To: lead + 8*time.Second, Timeout: d.AboutTime(2 * time.Second),
					Retries: 20, Backoff: d.AboutTime(time.Second), ObeysRetryAfter: true,
				}},
			}
			addFault(&w, d.AboutTime(20*time.Second), sim.Fault{Down: true, TellsEnd: true})
			return w
		},
		Shown: []Column{crowd, medianWait, slowest, good, sentMeanwhile},
		Goals: []Goal{forBothConfigs(crowdGoal())},
	}
}

func crowdGoal() Goal { return atMost("no 10 ms has more than 5 % of the tries", crowd, 5) }

// waitGoal allows a median wait one second longer than by polling. Callers poll if there is no
// guard.
func waitGoal() Goal {
	return Goal{
		Text: "median wait at most 1 s longer than by polling", Figure: medianWait,
		Bound: func(rs Rows) float64 { return orNoBound(rs.median(none, medianWait)+1000, medianWait) },
	}
}
