package scenario

import (
	"fmt"
	"time"

	"github.com/weir-go/weir/dev/proving/internal/sim"
)

// goodDays: the service has no trouble for which a guard should refuse calls.
func goodDays() []Scenario {
	all := []Scenario{
		failingDay("good-day-5-rare", 0.05, 1, time.Hour),
		failingDay("good-day-20-rare", 0.20, 1, time.Hour),
		failingDay("good-day-5-often", 0.05, 200, 290*time.Second),
		failingDay("good-day-20-often", 0.20, 200, 290*time.Second),
		busyDay("good-day-85-exponential", 0.85, "exponential", sim.Exponential, 1),
		busyDay("good-day-85-lognormal", 0.85, "lognormal", lognormal(1), 1),
		busyDay("good-day-95-exponential", 0.95, "exponential", sim.Exponential, 1000),
		busyDay("good-day-95-lognormal", 0.95, "lognormal", lognormal(1), 1000),
	}
	for i := range all {
		all[i].GoodDay = true
		all[i].Shown = []Column{falseRefusals, good, failed, refused, allOpenings}
	}
	all[3].Quick, all[4].Quick = true, true
	return all
}

// failingDay is a service at half of its capacity. A share of the calls always fails, such as
// requests for things that do not exist.
func failingDay(name string, errors, rate float64, long time.Duration) Scenario {
	return Scenario{
		Name:  name,
		Title: fmt.Sprintf("Good day: %.0f %% failures at %.0f/s", 100*errors, rate),
		Text: fmt.Sprintf("%.0f %% of the calls fail, each by itself, and always have. A guard that refuses calls here does "+
			"harm.", 100*errors),
		World: func(d sim.Draw) sim.World {
			w := steadyWorld(d, rate, 0.5)
			w.Service.ErrorRate = errors
			w.For = long
			return w
		},
		Goals: []Goal{atMostRefused(1)},
	}
}

// busyDay is a service with a high load and a queue that is long enough.
func busyDay(name string, load float64, word string, times func(time.Duration) sim.Distribution, perMillion float64) Scenario {
	return Scenario{
		Name:  name,
		Title: fmt.Sprintf("Good day: %.0f %% of the capacity, %s times", 100*load, word),
		Text: "200 calls per second come at random, and now and then some of them wait. Nearly all are answered in time, " +
			"so a guard that bounds the calls in flight too tightly does harm.",
		World: func(d sim.Draw) sim.World {
			w := steadyWorld(d, 200, load)
			w.Service = newService(d, w.Clients[0].Rate/load, 50*time.Millisecond, times)
			w.Service.Queue = 100 * w.Service.Servers
			w.Clients[0].Timeout = d.AboutTime(5 * time.Second)
			w.For = 290 * time.Second
			return w
		},
		Goals: []Goal{atMostRefused(perMillion)},
	}
}

// atMostRefused bounds the refusals of all seeds together.
func atMostRefused(perMillion float64) Goal {
	text := "at most one call refused in a million"
	if perMillion > 1 {
		text = fmt.Sprintf("at most %.0f calls refused in a million", perMillion)
	}
	return forBothConfigs(atMost(text, falseRefusals, perMillion))
}
