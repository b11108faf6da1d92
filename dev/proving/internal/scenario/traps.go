package scenario

import (
	"math"
	"time"

	"github.com/weir-go/weir/dev/proving/internal/sim"
)

// The known traps of adaptive bounds on calls in flight. In most of them the service is never in
// trouble.

// limitCreeps: a bound that grows while nothing happens, and no longer protects the service when it
// is needed.
func limitCreeps() Scenario {
	return Scenario{
		Name:  "limit-creeps",
		Title: "Trap: a limit that creeps up",
		Text: "100 calls per second use 60 % of the capacity for five minutes, and nothing happens: a limit that is " +
			"probed upwards grows and grows (concurrency-limits#134). Then capacity falls to 30 % for 30 s.",
		World: func(d sim.Draw) sim.World {
			w := steadyWorld(d, 100, 0.6)
			lost := sim.Span{From: 5 * time.Minute, To: 5*time.Minute + d.AboutTime(30*time.Second)}
			w.Faults = []sim.Fault{{Span: lost, Capacity: 0.3}}
			w.Trouble = lost
			w.For = lost.To + after
			return w
		},
		Shown: []Column{goodMeanwhile, failed, refusedMeanwhile, protectedAfter, medianWait, backAfter},
	}
}

// nightAndDay: hardly a call for ten minutes, and then all at once.
func nightAndDay() Scenario {
	return Scenario{
		Name:  "night-and-day",
		Title: "Trap: idle at night, busy at nine",
		Text: "Two calls per second for ten minutes, then 200 from one second to the next, which is half of the capacity. " +
			"A bound that was learned at night refuses calls in the morning.",
		World: func(d sim.Draw) sim.World {
			w := steadyWorld(d, 200, 0.5)
			c := &w.Clients[0]
			nine := d.AboutTime(10 * time.Minute)
			c.Rate /= 100
			c.Surge = []sim.Surge{{Span: sim.Span{From: nine, To: nine + time.Hour}, Times: 100}}
			w.For = nine + time.Minute
			return w
		},
		Shown: noTroubleShown(),
	}
}

// bimodalMix: most calls are fast, and some are a hundred times slower.
func bimodalMix() Scenario {
	return Scenario{
		Name:  "bimodal-mix",
		Title: "Trap: fast and slow calls",
		Text: "90 % of 200 calls per second take 5 ms, the others 500 ms, at 60 % of the capacity. Their mix changes the " +
			"latency from second to second, and nothing is wrong.",
		World: func(d sim.Draw) sim.World {
			w := steadyWorld(d, 200, 0.6)
			w.Service = newService(d, w.Clients[0].Rate/0.6, 54500*time.Microsecond, fastAndSlow)
			w.Service.Queue = 20 * w.Service.Servers
			w.Clients[0].Timeout = d.AboutTime(5 * time.Second)
			w.For = 2 * time.Minute
			return w
		},
		Shown: noTroubleShown(),
	}
}

// fastAndSlow returns the times of fast and slow calls. Nine in ten calls are fast, and the tenth
// takes a hundred times as long on average.
func fastAndSlow(mean time.Duration) sim.Distribution {
	fast := time.Duration(float64(mean) / 10.9)
	return sim.Bimodal(fast, 100*fast, 0.1)
}

// collectorPauses: the service stops for a moment, again and again.
func collectorPauses() Scenario {
	return Scenario{
		Name:  "collector-pauses",
		Title: "Trap: pauses of a garbage collector",
		Text: "The service stops for 100 to 300 ms every 5 s, at 200 calls per second and 50 % of the capacity. Calls in " +
			"a pause take longer, and all are answered.",
		World: func(d sim.Draw) sim.World {
			w := steadyWorld(d, 200, 0.5)
			w.Service.Queue = 20 * w.Service.Servers
			w.Clients[0].Timeout = d.AboutTime(3 * time.Second)
			w.For = 2 * time.Minute
			every := d.AboutTime(5 * time.Second)
			for at := every; at < w.For; at += every {
				pause := sim.Span{From: at, To: at + seconds(d.Between(0.1, 0.3))}
				w.Faults = append(w.Faults, sim.Fault{Span: pause, Capacity: sim.NoCapacity})
			}
			return w
		},
		Shown: noTroubleShown(),
	}
}

// deploymentSlower: from some moment on all calls take twice as long, until the end.
func deploymentSlower() Scenario {
	return deployment("deployment-slower", "2 × slower", 1, 2,
		"A bound that measures against the old latency refuses calls that would be answered.")
}

// deploymentFaster: from some moment on all calls take half as long.
func deploymentFaster() Scenario {
	return deployment("deployment-faster", "2 × faster", 2, 1,
		"A bound that halves with the latency has to grow with the throughput.")
}

// deployment changes the time of all calls after a minute, until the end.
func deployment(name, title string, before, after float64, why string) Scenario {
	return Scenario{
		Name:  name,
		Title: "Trap: a deployment that makes all " + title,
		Text: "After a minute a new version makes all calls " + title + ". The load is 35 % of the capacity of the faster " +
			"version, so nothing is wrong. " + why,
		World: func(d sim.Draw) sim.World {
			w := steadyWorld(d, 200, 0.35)
			w.Service.Queue = 20 * w.Service.Servers
			w.Clients[0].Timeout = d.AboutTime(5 * time.Second)
			change := d.AboutTime(time.Minute)
			w.For = change + 90*time.Second
			for _, f := range []sim.Fault{
				{Span: sim.Span{To: change}, Slower: before},
				{Span: sim.Span{From: change, To: w.For}, Slower: after},
			} {
				if f.Slower > 1 {
					w.Faults = append(w.Faults, f)
				}
			}
			return w
		},
		Shown: noTroubleShown(),
	}
}

// growingBaseline: an overload that comes so slowly that its latency looks usual.
func growingBaseline() Scenario {
	return Scenario{
		Name:  "growing-baseline",
		Title: "Trap: a baseline that grows with the overload",
		Text: "The load rises from 60 to 130 % of the capacity within two minutes and stays there for two more. A bound " +
			"that takes the latency of the last minute as its measure rises with it (concurrency-limits#165). The " +
			"service could answer three quarters of the calls at the end.",
		World: func(d sim.Draw) sim.World {
			w := steadyWorld(d, 100, 0.6)
			w.Service.Queue = 30 * w.Service.Servers
			const steps = 24
			for i := range steps {
				from := lead + time.Duration(i)*5*time.Second
				w.Clients[0].Surge = append(w.Clients[0].Surge, sim.Surge{
					Span:  sim.Span{From: from, To: from + 5*time.Second},
					Times: 1 + float64(i+1)/steps*(1.3/0.6-1),
				})
			}
			last := &w.Clients[0].Surge[steps-1]
			last.To += 2 * time.Minute
			w.Trouble = sim.Span{From: lead + time.Duration(math.Ceil(0.4/0.7*120))*time.Second, To: last.To}
			w.For = last.To + after
			return w
		},
		Shown: []Column{goodMeanwhile, failedMeanwhile, refusedMeanwhile, wasted, medianWait, backAfter},
	}
}

// steadyProbes: a bound that is lowered to measure the latency without a queue starves the traffic.
func steadyProbes() Scenario {
	return Scenario{
		Name:  "steady-probes",
		Title: "Trap: a probe that starves traffic",
		Text: "150 calls per second of 300 ms, so 45 are always in flight, at 70 % of the capacity for five minutes. A " +
			"bound that is lowered now and then to measure the latency without load refuses calls (envoy#38338).",
		World: func(d sim.Draw) sim.World {
			w := steadyWorld(d, 150, 0.7)
			w.Service = newService(d, w.Clients[0].Rate/0.7, 300*time.Millisecond, sim.Exponential)
			w.Service.Queue = 20 * w.Service.Servers
			w.Clients[0].Timeout = d.AboutTime(5 * time.Second)
			w.For = 5 * time.Minute
			return w
		},
		Shown: noTroubleShown(),
	}
}

func noTroubleShown() []Column {
	return []Column{falseRefusals, good, failed, refused, medianWait, allOpenings}
}
