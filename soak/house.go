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
	"github.com/weir-go/weir/limiter"
)

// house is a gate with the books that are kept of it beside its own.
type house struct {
	gate    *weir.Gate
	service service
	rate    float64 // a second
	burst   int
	began   time.Time
	faults  *faults

	made, ran, refusedOpen, refusedLimited, gaveUp atomic.Int64
}

func newHouse(i int, r *rand.Rand, faults *faults) *house {
	h := &house{rate: float64(50 + r.IntN(2000)), burst: 1 + r.IntN(50), faults: faults, began: time.Now()}
	c := weir.Config{Rate: limiter.PerSecond(h.rate), Burst: h.burst, Breaker: drawConfig(r)}
	if i%3 == 0 {
		c.MaxWait = time.Duration(r.IntN(20)) * time.Millisecond
	}
	c.Breaker.OnChange = h.changed
	h.gate = weir.New(fmt.Sprint("gate ", i), c)
	return h
}

// drawConfig draws a breaker that opens and closes often.
func drawConfig(r *rand.Rand) breaker.Config {
	return breaker.Config{
		Window: time.Duration(50+r.IntN(2000)) * time.Millisecond, Buckets: 1 + r.IntN(20), MinCalls: 1 + r.IntN(20),
		FailureRate: 0.1 + 0.8*r.Float64(), Cooldown: time.Duration(1+r.IntN(200)) * time.Millisecond, CooldownJitter: r.Float64(),
		Probes: 1 + r.IntN(8), ProbeTimeout: time.Duration(5+r.IntN(50)) * time.Millisecond,
		Latency: r.IntN(10) == 0, Active: r.IntN(3) == 0, ConsecutiveFailures: r.IntN(10),
	}
}

// changed is told of each change of the breaker.
func (h *house) changed(c breaker.Change) {
	const mostProbes = 8 // of any that drawConfig draws
	if c.From == breaker.HalfOpen && c.Counts.Calls() > mostProbes {
		h.faults.add("probes", "%s: %d results of probes: %v", h.gate.Name(), c.Counts.Calls(), c)
	}
}

// visit makes a call, and books what came of it.
func (h *house) visit(ctx context.Context) {
	defer catch()
	h.made.Add(1)
	ran := false
	err := h.gate.Run(ctx, func(ctx context.Context) error {
		ran = true
		h.ran.Add(1)
		return h.service.call(ctx)
	})
	switch {
	case ran:
	case errors.Is(err, breaker.ErrOpen):
		h.refusedOpen.Add(1)
	case errors.Is(err, limiter.ErrLimited):
		h.refusedLimited.Add(1)
	case errors.Is(err, context.Canceled):
		h.gaveUp.Add(1)
	}
}

// meddle does what an operator might.
func (h *house) meddle(r *rand.Rand) {
	b := h.gate.Breaker()
	switch r.IntN(8) {
	case 0:
		b.Force(breaker.ForcedOpen)
	case 1:
		b.Force(breaker.ForcedClosed)
	case 2:
		b.Force(breaker.Shadow)
	case 3:
		b.OpenFor(time.Duration(r.IntN(50)) * time.Millisecond)
	case 4:
		c := drawConfig(r)
		c.OnChange = h.changed
		if err := b.Reconfigure(c); err != nil {
			h.faults.add("reconfigure", "%v", err)
		}
	case 5:
		h.gate.Hold(time.Duration(r.IntN(20)) * time.Millisecond)
	default:
		b.Release()
	}
}

// audit compares the books while calls go on: what has ended can only be less than what began.
func (h *house) audit() {
	if admitted, most := h.admitted(), float64(h.burst)+h.rate*time.Since(h.began).Seconds()+1; float64(admitted) > most {
		h.faults.add("limit", "%s admitted %d, at most %.1f", h.gate.Name(), admitted, most)
	}
	t := h.gate.Totals()
	if ended, ran := t.Calls()+t.Ignored, h.ran.Load(); ended > ran {
		h.faults.add("counts", "%s: %d calls ended of %d that ran", h.gate.Name(), ended, ran)
	}
}

// admitted is how many tokens were used.
func (h *house) admitted() int64 {
	a := h.gate.Admissions()
	return a.Allowed + a.Waited
}

// figure returns the figure of b with that name.
func figure(b *breaker.Breaker, name string) (n int64) {
	for s, v := range b.Observe {
		if s.Instrument.Name == name {
			n = int64(v)
		}
	}
	return n
}

// settle compares the books when no call goes on any more: all is accounted for.
func (h *house) settle() {
	t, late := h.gate.Totals(), figure(h.gate.Breaker(), "weir.breaker.late_results")
	if ended, ran := t.Calls()+t.Ignored+late, h.ran.Load(); ended != ran {
		h.faults.add("lost calls", "%s: %d calls ran, %d ended: %+v, %d late", h.gate.Name(), ran, ended, t, late)
	}
	if made, ended := h.made.Load(), h.ran.Load()+h.refusedOpen.Load()+h.refusedLimited.Load()+h.gaveUp.Load(); made != ended {
		h.faults.add("lost calls", "%s: %d calls made, %d ended", h.gate.Name(), made, ended)
	}
	if refused := h.refusedOpen.Load(); t.Refused != refused {
		h.faults.add("lost refusals", "%s: %d refused, %d counted", h.gate.Name(), refused, t.Refused)
	}
	if admitted, ran := h.admitted(), h.ran.Load(); admitted != ran {
		h.faults.add("tokens", "%s: %d calls ran with %d tokens", h.gate.Name(), ran, admitted)
	}
	if a := h.gate.Admissions(); a.Refused != h.refusedLimited.Load() {
		h.faults.add("lost refusals", "%s: %d over the limit, %d counted", h.gate.Name(), h.refusedLimited.Load(), a.Refused)
	}
	if active := figure(h.gate.Breaker(), "weir.breaker.call.active"); active != 0 {
		h.faults.add("active", "%s: %d calls still active", h.gate.Name(), active)
	}
}
