package breaker

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/weir-go/weir/window"
)

// allowProbe lets a call pass as a probe if there is a free slot.
func (b *Breaker) allowProbe(m *Permit, at time.Duration) error {
	b.mu.Lock()
	p := b.advance(at)
	slot, use := -1, uint32(0)
	if p.state == HalfOpen && !b.tooEarlyToProbe(p, at) {
		slot, use = b.occupySlot(p, at)
	}
	refusal := b.probeRefusal(p, slot, at)
	b.mu.Unlock()
	b.changes.deliver()
	if refusal != nil {
		return b.refuse(refusal)
	}
	if p.state != HalfOpen { // the state has changed since the caller loaded the phase
		return b.allow(m, b.phase.Load(), at)
	}
	m.fill(b, p, at)
	m.slot, m.slotUse = int32(slot), use
	return nil
}

// checkProbes does the work of check for a breaker that is half-open, or was until HalfOpenTimeout.
func (b *Breaker) checkProbes(at time.Duration) error {
	b.mu.Lock()
	p := b.advance(at)
	slot := -1
	if !b.tooEarlyToProbe(p, at) {
		slot = b.slots.findFree(at, p.rules.config.Probes)
	}
	refusal := b.probeRefusal(p, slot, at)
	b.mu.Unlock()
	b.changes.deliver()
	if refusal != nil {
		return b.refuse(refusal)
	}
	return nil
}

// probeRefusal returns the error of a refused call, or nil if the call may pass. slot is the free
// slot that the call found, or -1. The lock is held.
func (b *Breaker) probeRefusal(p *phase, slot int, at time.Duration) *OpenError {
	switch {
	case p.passes == noCalls:
		return b.refusal(p)
	case p.state != HalfOpen || slot >= 0:
		return nil
	case b.tooEarlyToProbe(p, at):
		return b.refusal(p)
	}
	next := b.slots.nextFree(at, p.rules.config.Probes)
	began := b.date(next - p.rules.config.ProbeTimeout)
	if next >= p.until { // HalfOpenTimeout ends first
		next = p.reopenedUntil()
	}
	until := b.date(next)
	if e := p.live.full.Load(); e != nil && e.Until.Equal(until) {
		return e
	}
	e := p.newRefusal(b)
	e.Until, e.cooldown, e.began, e.spread = until, 0, began, &p.live.spread
	p.live.full.Store(e)
	return e
}

// occupySlot occupies a slot, or returns -1 if none is free. The lock is held.
func (b *Breaker) occupySlot(p *phase, at time.Duration) (slot int, use uint32) {
	slot = b.slots.findFree(at, p.rules.config.Probes)
	if slot < 0 {
		return slot, 0
	}
	use, abandoned := b.slots.occupy(slot, addClamped(p.latest(at), p.rules.config.ProbeTimeout))
	if abandoned {
		b.abandoned.Add(1)
	}
	if timeout := p.rules.config.HalfOpenTimeout; timeout > 0 && p.until == math.MaxInt64 {
		// the first probe starts the timeout
		timed := *p
		timed.until = addClamped(p.latest(at), timeout)
		b.phase.Store(&timed)
	}
	return slot, use
}

// recordLocked records the result of a call of a half-open or recovering breaker, whose results are
// judged under the lock. It does nothing and reports false if the phase of the call has ended.
func (b *Breaker) recordLocked(ctx context.Context, m *Permit, o Outcome, at time.Duration, f *failure) bool {
	b.mu.Lock()
	p := b.advance(at)
	counts := p.epoch == m.phase.epoch
	if counts {
		b.changes.cause = ctx
		took := at - m.start
		p.tally.Record(at, verdictOf(o), took)
		if o == Failure && f.isKept() {
			b.keepFailure(p, m, at, f)
		}
		if m.retryAfter > 0 {
			p.askRetry(at, m.retryAfter)
		}
		if p.results == rampResults {
			b.addRamped(m, p, o, took, at)
		} else {
			b.addProbe(m, p, o, took > p.rules.config.SlowCall, at)
		}
		b.changes.cause = nil
	}
	b.mu.Unlock()
	b.changes.deliver()
	if counts && m.phase.traced && o <= Failure {
		b.keepExemplar(ctx, m, at)
	}
	return counts
}

// addProbe adds the result of a probe, and ends the phase if there are enough results. The lock is
// held.
func (b *Breaker) addProbe(m *Permit, p *phase, o Outcome, slow bool, at time.Duration) {
	if o != Success && o != Failure {
		b.slots.leaveSlot(m.slot, m.slotUse, slotFree)
		return
	}
	b.slots.leaveSlot(m.slot, m.slotUse, slotUsed)
	c := withResult(*p.live.probed.Load(), o, slow)
	p.live.probed.Store(&c)
	b.decideByProbes(p, c, at)
}

// decideByProbes closes or opens a half-open breaker if there are enough results of probes. The
// lock is held.
func (b *Breaker) decideByProbes(p *phase, c window.Counts, at time.Duration) {
	r := p.rules
	need := min(int64(r.config.MinCalls), int64(r.config.Probes))
	if p.byRun && c.Successes == 0 {
		need = 1
	}
	pending := int64(0)
	if r.runs {
		pending = b.slots.inFlight(at)
	}
	failed, decided := r.verdict(c, pending, need)
	switch {
	case r.failureRate == neverReached && c.Failures > 0:
		b.open(p, at, cause{reason: "a probe failed", origin: byCalls}, c)
	case !decided:
	case !failed:
		why := cause{reason: fmt.Sprintf("%d of %d probes succeeded", c.Successes, c.Calls()), origin: byCalls}
		b.enter(endlessStay(r.afterProbes(), at), why, c)
	case r.failureRate.reached(c.Failures, c.Calls()):
		b.open(p, at, cause{reason: r.failureReason(c.Failures, c.Calls()) + ", of probes", origin: byCalls}, c)
	default:
		b.open(p, at, cause{reason: r.slowReason(c.Slow, c.Calls()) + ", of probes", origin: byCalls}, c)
	}
}

// verdict reports whether the results of calls that began together reach a rate, or cannot reach it
// any more, however the pending calls among them end. At least need results decide. If FailureRate
// is off, half of the calls may not fail.
func (r *rules) verdict(c window.Counts, pending, need int64) (failed, decided bool) {
	failureRate, all := r.failureRate, c.Calls()+pending
	if failureRate == neverReached {
		failureRate = wholeRate / 2
	}
	failed = failureRate.reached(c.Failures, all) || r.slowRate.reached(c.Slow, all)
	canFail := failureRate.reached(c.Failures+pending, all) || r.slowRate.reached(c.Slow+pending, all)
	return failed, c.Calls() >= need && failed == canFail
}
