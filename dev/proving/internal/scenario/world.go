package scenario

import (
	"math"
	"time"

	"github.com/weir-go/weir/dev/proving/internal/sim"
)

// The usual course of time: guards see a good service first, so that those that learn have learned.
const (
	warmup = 10 * time.Second
	lead   = 30 * time.Second // before the trouble, with the warmup
	after  = 30 * time.Second // after the trouble
)

// steadyWorld returns a world without a fault: one process makes about rate calls per second. That
// is the share load of the capacity of the service, which is at least 100 calls per second. A call
// takes about 50 ms, up to four calls per server wait, and callers wait about a second for their
// answers.
func steadyWorld(d sim.Draw, rate, load float64) sim.World {
	rate = d.About(rate)
	return sim.World{
		Service: newService(d, max(rate/load, 100), 50*time.Millisecond, sim.Exponential),
		Clients: []sim.Client{{Rate: rate, Timeout: d.AboutTime(time.Second)}},
		Warmup:  warmup,
		For:     lead + after,
	}
}

// newService returns a service that takes capacity calls per second, of about mean each.
func newService(d sim.Draw, capacity float64, mean time.Duration, times func(mean time.Duration) sim.Distribution) sim.Service {
	servers := int(math.Max(1, math.Round(capacity*d.AboutTime(mean).Seconds())))
	return sim.Service{Servers: servers, Time: times(seconds(float64(servers) / capacity)), Queue: 4 * servers}
}

// addFault adds a fault to the world, after the lead. The figures cover the time of this fault.
func addFault(w *sim.World, long time.Duration, f sim.Fault) {
	f.Span = sim.Span{From: lead, To: lead + long}
	w.Faults = append(w.Faults, f)
	w.Trouble = f.Span
	w.For = f.To + after
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// lognormal returns lognormal distributions by their means.
func lognormal(sigma float64) func(mean time.Duration) sim.Distribution {
	return func(mean time.Duration) sim.Distribution { return sim.Lognormal(mean, sigma) }
}
