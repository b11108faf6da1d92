package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/inflight"
	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/stat"
)

// gateUnderTest is a gate, and separate counts of its calls.
type gateUnderTest struct {
	gate    *weir.Gate
	service service
	rate    float64 // per second
	burst   int
	began   time.Time
	// when the breaker became half-open last
	halfOpen time.Time
	faults   *faults

	made, ran, refusedOpen, refusedLimited, gaveUp atomic.Int64
}

func newGate(i int, r *rand.Rand, faults *faults) *gateUnderTest {
	g := &gateUnderTest{rate: float64(50 + r.IntN(2000)), burst: 1 + r.IntN(50), faults: faults, began: time.Now()}
	c := weir.Config{Rate: limiter.PerSecond(g.rate), Burst: g.burst, Breaker: randomConfig(r)}
	if i%3 == 0 {
		c.MaxWait = time.Duration(r.IntN(20)) * time.Millisecond
	}
	c.Breaker.OnChange = g.changed
	g.gate = weir.New(fmt.Sprint("gate ", i), c)
	return g
}

// otherConfig returns a config whose rate and burst are at most those of the first one.
func (g *gateUnderTest) otherConfig(r *rand.Rand) weir.Config {
	c := weir.Config{Rate: limiter.PerSecond(g.rate * (1 + r.Float64()) / 2), Burst: 1 + r.IntN(g.burst), Breaker: randomConfig(r)}
	c.Breaker.OnChange = g.changed
	if r.IntN(3) == 0 {
		c.MaxWait = time.Duration(r.IntN(20)) * time.Millisecond
	}
	if r.IntN(2) == 0 {
		c.MaxConcurrent, c.Adaptive = 1+r.IntN(50), r.IntN(2) == 0
	}
	return c
}

// The bounds of randomConfig.
const (
	maxProbes       = 8
	minProbeTimeout = 5 * time.Millisecond
)

// randomConfig returns a config with which a breaker opens and closes often.
func randomConfig(r *rand.Rand) breaker.Config {
	return breaker.Config{
		Window: time.Duration(50+r.IntN(2000)) * time.Millisecond, Buckets: 1 + r.IntN(20), MinCalls: 1 + r.IntN(20),
		FailureRate: 0.1 + 0.8*r.Float64(), Cooldown: time.Duration(1+r.IntN(200)) * time.Millisecond, CooldownJitter: r.Float64(),
		Probes: 1 + r.IntN(maxProbes), ProbeTimeout: minProbeTimeout + time.Duration(r.IntN(50))*time.Millisecond,
		Latency: r.IntN(10) == 0, ConsecutiveFailures: r.IntN(10), FailureRun: r.IntN(12) - 1,
		Recovery: []time.Duration{breaker.Off, 50 * time.Millisecond, time.Second}[r.IntN(3)],
	}
}

// changed checks a transition of the breaker. Transitions are reported one at a time.
func (g *gateUnderTest) changed(c breaker.Change) {
	if c.To == breaker.HalfOpen {
		g.halfOpen = c.At
	}
	if c.From != breaker.HalfOpen {
		return
	}
	// A probe without a result passes its slot on after ProbeTimeout, and its late result counts
	// too.
	passedOn := int64(c.At.Sub(g.halfOpen) / minProbeTimeout)
	if most := maxProbes * (1 + passedOn); c.Counts.Calls() > most {
		g.faults.add("probes", "%s: %d results of probes, of at most %d: %v", g.gate.Name(), c.Counts.Calls(), most, c)
	}
}

// makeRequest makes a call and counts its result.
func (g *gateUnderTest) makeRequest(ctx context.Context) {
	defer recoverFailed()
	g.made.Add(1)
	ran := false
	err := g.gate.Run(ctx, func(ctx context.Context) error {
		ran = true
		g.ran.Add(1)
		return g.service.call(ctx)
	})
	switch {
	case ran:
	case errors.Is(err, breaker.ErrOpen):
		g.refusedOpen.Add(1)
	case errors.Is(err, limiter.ErrLimited), errors.Is(err, inflight.ErrFull):
		g.refusedLimited.Add(1)
	case errors.Is(err, context.Canceled):
		g.gaveUp.Add(1)
	}
}

// override makes a random change that an operator might make.
func (g *gateUnderTest) override(r *rand.Rand) {
	b := g.gate.Breaker()
	switch r.IntN(8) {
	case 0:
		b.Force(breaker.ForcedOpen, "")
	case 1:
		b.Force(breaker.ForcedClosed, "")
	case 2:
		b.Force(breaker.Shadow, "")
	case 3:
		b.OpenFor(time.Duration(r.IntN(50)) * time.Millisecond)
	case 4:
		if err := g.gate.Reconfigure(g.otherConfig(r)); err != nil {
			g.faults.add("reconfigure", "%v", err)
		}
	case 5:
		g.gate.Hold(time.Duration(r.IntN(20)) * time.Millisecond)
	default:
		b.Release()
	}
}

// audit compares the counts while calls are running: no more calls can have ended than have begun.
func (g *gateUnderTest) audit() {
	if allowed, limit := g.allowed(), float64(g.burst)+g.rate*time.Since(g.began).Seconds()+1; float64(allowed) > limit {
		g.faults.add("limit", "%s allowed %d, at most %.1f", g.gate.Name(), allowed, limit)
	}
	t := g.gate.Totals()
	if ended, ran := t.Calls()+t.Ignored, g.ran.Load(); ended > ran {
		g.faults.add("counts", "%s: %d calls ended of %d that ran", g.gate.Name(), ended, ran)
	}
}

// allowed returns how many tokens were used.
func (g *gateUnderTest) allowed() int64 {
	a := g.gate.Stats()
	return a.Allowed + a.Waited
}

// metricOf returns the value of a metric, or 0 if the source does not have it.
func metricOf(source stat.Source, name string) (n int64) {
	for s, v := range source.Observe {
		if s.Instrument.Name == name {
			n = int64(v)
		}
	}
	return n
}

// checkTotals compares the counts when no call is running any more: they must be equal.
func (g *gateUnderTest) checkTotals() {
	t, late := g.gate.Totals(), metricOf(g.gate.Breaker(), "weir.breaker.late_results")
	if ended, ran := t.Calls()+t.Ignored+late, g.ran.Load(); ended != ran {
		g.faults.add("lost calls", "%s: %d calls ran, %d ended: %+v, %d late", g.gate.Name(), ran, ended, t, late)
	}
	if made, ended := g.made.Load(), g.ran.Load()+g.refusedOpen.Load()+g.refusedLimited.Load()+g.gaveUp.Load(); made != ended {
		g.faults.add("lost calls", "%s: %d calls made, %d ended", g.gate.Name(), made, ended)
	}
	if refused := g.refusedOpen.Load(); t.Refused != refused {
		g.faults.add("lost refusals", "%s: %d refused, %d counted", g.gate.Name(), refused, t.Refused)
	}
	if allowed, ran := g.allowed(), g.ran.Load(); allowed != ran {
		g.faults.add("tokens", "%s: %d calls ran with %d tokens", g.gate.Name(), ran, allowed)
	}
	if a := g.gate.Stats(); a.Refused != g.refusedLimited.Load() {
		g.faults.add("lost refusals", "%s: %d over the limit, %d counted", g.gate.Name(), g.refusedLimited.Load(), a.Refused)
	}
	if active := metricOf(g.gate, "weir.inflight.call.active"); active != 0 {
		g.faults.add("active", "%s: %d calls still active", g.gate.Name(), active)
	}
}
