package scenario

import (
	"fmt"
	"time"

	"github.com/weir-go/weir/dev/proving/internal/sim"
)

// semian returns the nine scenarios in the directory experiments of github.com/Shopify/semian, from
// their descriptions. There, 60 threads call almost without a pause, and each has a breaker of its
// own. Here there are ten processes of one user each, because the other 50 would only repeat them.
func semian() []Scenario {
	return []Scenario{
		phases("semian-spike-20", "a spike of 20 %", 20, quietPhases(3), failingPhases(0.20), quietPhases(3)),
		phases("semian-spike-100", "a spike of 100 %", 20, quietPhases(3), failingPhases(1), quietPhases(3)),
		phases("semian-spikes", "spikes of 20, 60 and 100 %", 20,
			quietPhases(3), failingPhases(0.20), quietPhases(3), failingPhases(0.60), quietPhases(3), failingPhases(1), quietPhases(3)),
		phases("semian-sustained", "20 % for five minutes", 30, quietPhases(4), failingPhases(repeatRates(10, 0.20)...), quietPhases(4)),
		phases("semian-gradual", "a gradual rise to 5 %", 60, quietPhases(1),
			failingPhases(0.015, 0.02, 0.025, 0.03, 0.035, 0.04, 0.045, 0.05), quietPhases(1)),
		phases("semian-near-target", "1.2 %, hardly more than usual", 30, quietPhases(1), failingPhases(repeatRates(4, 0.012)...), quietPhases(1)),
		phases("semian-oscillating", "2 and 6 % in turn", 10, quietPhases(2), failingPhases(repeatRates(9, 0.02, 0.06)...), quietPhases(2)),
		slowService(),
		slowQuery(),
	}
}

// phases returns a scenario of error rates, in phases of some seconds each.
func phases(name, title string, each float64, spans ...[]float64) Scenario {
	return Scenario{
		Name:  name,
		Title: "Semian: " + title,
		Text: fmt.Sprintf("Ten users, each with a guard, call a service that takes 150 ms, 50 ms after each answer. Usually 1 %% of the calls fail. The "+
			"share changes in phases of %.0f s: %s. Figures named meanwhile cover the time from the first to the last "+
			"of the other phases.", each, title),
		World: func(d sim.Draw) sim.World {
			w := userWorld(d)
			each := d.AboutTime(seconds(each))
			at := time.Duration(0)
			for _, span := range spans {
				for _, rate := range span {
					if rate != usualErrorRate {
						fault := sim.Span{From: at, To: at + each}
						w.Faults = append(w.Faults, sim.Fault{Span: fault, ErrorRate: rate})
						w.Trouble = sim.Span{From: w.Faults[0].From, To: fault.To}
					}
					at += each
				}
			}
			w.For = at
			return w
		},
		Shown: []Column{goodMeanwhile, failedMeanwhile, refusedMeanwhile, good, openings},
	}
}

// usualErrorRate is the error rate of a phase without a fault.
const usualErrorRate = 0.01

func quietPhases(n int) []float64 { return repeatRates(n, usualErrorRate) }

func failingPhases(rates ...float64) []float64 { return rates }

func repeatRates(n int, rates ...float64) (all []float64) {
	for range n {
		all = append(all, rates...)
	}
	return all
}

// userWorld returns ten users who make a short pause between calls.
func userWorld(d sim.Draw) sim.World {
	w := sim.World{
		Service: newService(d, d.About(1000), 150*time.Millisecond, lognormal(0.5)),
		Clients: []sim.Client{{Processes: 10, Users: 1, Think: 50 * time.Millisecond, Timeout: 10 * time.Second}},
	}
	w.Service.ErrorRate = usualErrorRate
	return w
}

// slowService: one of ten services is slow, and users lose their time with it.
func slowService() Scenario {
	return Scenario{
		Name:  "semian-slow-service",
		Title: "Semian: one of ten services is slow",
		Text: "Users call one of ten services at random. One of them takes 10 s longer for five minutes, so most of its " +
			"calls time out and its users do nothing else meanwhile. The guard is the one of that service; the time with " +
			"the other nine is the pause between two calls. The more calls users make in all, the less they were held up.",
		World: func(d sim.Draw) sim.World {
			w := userWorld(d)
			w.Clients[0].Think = d.AboutTime(1350 * time.Millisecond)
			slow := sim.Span{From: lead, To: lead + d.AboutTime(5*time.Minute)}
			w.Faults = []sim.Fault{{Span: slow, Slower: d.About(9.95 / 0.15)}}
			w.Trouble = slow
			w.For = slow.To + 90*time.Second
			return w
		},
		Shown: []Column{offered, goodMeanwhile, failedMeanwhile, refusedMeanwhile, openings, backAfter},
	}
}

// slowQuery: one of ten queries is slow, and occupies the servers of all.
func slowQuery() Scenario {
	return Scenario{
		Name:  "semian-slow-query",
		Title: "Semian: one of ten queries is slow",
		Text: "The service has three quarters of the servers that its users keep busy, and no queue. For two minutes one " +
			"of ten queries takes 9.5 s longer. It occupies the servers, and the other nine are turned away at once. The " +
			"guard does not see queries.",
		World: func(d sim.Draw) sim.World {
			w := userWorld(d)
			w.Clients[0].Processes = 20
			w.Service.Servers, w.Service.Queue = 15, 0
			slow := sim.Span{From: lead, To: lead + d.AboutTime(2*time.Minute)}
			w.Faults = []sim.Fault{{Span: slow, Slower: d.About(9.65 / 0.15), SlowShare: 0.1}}
			w.Trouble = slow
			w.For = slow.To + time.Minute
			return w
		},
		Shown: []Column{offered, goodMeanwhile, failedMeanwhile, refusedMeanwhile, openings, backAfter},
	}
}
