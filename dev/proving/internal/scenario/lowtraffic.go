package scenario

import (
	"time"

	"github.com/weir-go/weir/dev/proving/internal/sim"
)

// everyFiveSeconds: too few calls for a rule that needs many of them.
func everyFiveSeconds() Scenario {
	return Scenario{
		Name:  "low-traffic-5s",
		Title: "Low traffic: a call every 5 s",
		Text: "The service fails for ten minutes, in which 120 calls are offered. A rule that needs 20 calls within ten " +
			"seconds never opens a breaker here.",
		World: func(d sim.Draw) sim.World { return rareCalls(d, 5*time.Second, 10*time.Minute) },
		Shown: []Column{sentMeanwhile, badSent, openings, goodAfter, backAfter},
		Goals: append(lowTrafficGoals(),
			forBothConfigs(atMost("recovery noticed within MaxCooldown, 5 min, and the next three calls", backAfter, 315))),
		Quick: true,
	}
}

// everyMinute: a service that is called by a timer.
func everyMinute() Scenario {
	return Scenario{
		Name:  "low-traffic-1m",
		Title: "Low traffic: a call every minute",
		Text:  "The service fails for an hour, in which 60 calls are offered.",
		World: func(d sim.Draw) sim.World { return rareCalls(d, time.Minute, time.Hour) },
		Shown: []Column{sentMeanwhile, badSent, openings, goodAfter, backAfter},
		Goals: lowTrafficGoals(),
	}
}

// rareCalls returns a world with a call per interval, and an outage. The times before and after the
// outage are as long as the outage.
func rareCalls(d sim.Draw, interval, outage time.Duration) sim.World {
	w := steadyWorld(d, 1/interval.Seconds(), 0.1)
	long := d.AboutTime(outage)
	down := sim.Span{From: long, To: 2 * long}
	w.Faults = []sim.Fault{{Span: down, Down: true, FailTime: d.AboutTime(100 * time.Millisecond)}}
	w.Trouble = down
	w.Warmup = 0
	w.For = 3 * long
	return w
}

func lowTrafficGoals() []Goal {
	return []Goal{
		forBothConfigs(atMost("opens after at most 10 bad calls", badSent, 10)),
		forBothConfigs(atMost("at most a third of the calls sent", sentMeanwhile, 100.0/3)),
	}
}
