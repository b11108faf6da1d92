package scenario

import (
	"time"

	"github.com/weir-go/weir/dev/proving/internal/sim"
)

// Marc Brooker compares retries that a token bucket bounds with retries behind a breaker: "Fixing
// retries with token buckets and circuit breakers" (2022). How well does each protect the service,
// and what do its callers see? The two scenarios differ in the budget alone.

// retriesWithBudget: each good call earns a tenth of a retry.
func retriesWithBudget() Scenario {
	return Scenario{
		Name:  "retries-with-budget",
		Title: "Brooker's retries: token bucket",
		Text: "10 to 60 % of the calls fail for a minute, one share per seed. 20 processes make 200 calls per second and " +
			"retry up to three times, as long as they have tokens: each good call earns a tenth of one.",
		World: func(d sim.Draw) sim.World { return retryWorld(d, 0.1) },
		Shown: []Column{goodMeanwhile, failedMeanwhile, refusedMeanwhile, sentMeanwhile, openings},
	}
}

// retriesWithoutBudget: the guard alone bounds the retries.
func retriesWithoutBudget() Scenario {
	return Scenario{
		Name:  "retries-without-budget",
		Title: "Brooker's retries: the guard alone",
		Text: "The same failures and the same three retries without a token bucket. The guard sees each attempt. Compare " +
			"the calls sent with those of the row none above. The rows with a retry budget count attempts in the guard " +
			"itself, and a tenth of a retry is earned by each first call, not by each good one.",
		World: func(d sim.Draw) sim.World { return retryWorld(d, 0) },
		Shown: []Column{goodMeanwhile, failedMeanwhile, refusedMeanwhile, sentMeanwhile, openings},
	}
}

func retryWorld(d sim.Draw, budget float64) sim.World {
	w := steadyWorld(d, 200, 0.2)
	c := &w.Clients[0]
	c.Processes, c.Retries, c.Budget = 20, 3, budget
	c.Backoff = d.AboutTime(50 * time.Millisecond)
	addFault(&w, d.AboutTime(time.Minute), sim.Fault{ErrorRate: d.Between(0.1, 0.6)})
	return w
}
