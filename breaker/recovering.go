package breaker

import (
	"fmt"
	"time"

	"github.com/weir-go/weir/window"
)

// allowShare lets a call of a recovering breaker pass if it belongs to the share that passes.
func (b *Breaker) allowShare(m *Permit, p *phase, at time.Duration) error {
	if p.flights != nil && b.openIfHung(p, at) {
		return b.allowAt(m, b.phase.Load(), at)
	}
	b.mu.Lock()
	p = b.advance(at)
	b.endOverdueRound(p, at)
	p = b.phase.Load()
	passes := false
	if p.state == Recovering {
		r := &p.live.ramp
		if passes = r.passes(at); passes {
			r.pass(at, r.size(p.rules.minCalls))
			m.slotUse = r.round
		} else {
			r.refuse()
		}
	}
	b.mu.Unlock()
	b.changes.deliver()
	switch {
	case p.state != Recovering: // the state has changed since the caller loaded the phase
		return b.allow(m, b.phase.Load(), at)
	case !passes:
		return b.refuse(p.refusal)
	}
	m.fill(b, p, at)
	return nil
}

// checkShare does the work of check for a recovering breaker.
func (b *Breaker) checkShare(at time.Duration) error {
	b.mu.Lock()
	p := b.advance(at)
	refused := p.state == Recovering && !p.live.ramp.passes(at)
	if refused {
		p.live.ramp.refuse()
	}
	b.mu.Unlock()
	if refused {
		return b.refuse(p.refusal)
	}
	return nil
}

// addRamped adds the result of a call of a recovering breaker to the round, if the call began in
// it, and ends the round if there are enough results. The lock is held.
func (b *Breaker) addRamped(m *Permit, p *phase, o Outcome, slow bool, at time.Duration) {
	if r := &p.live.ramp; (o == Success || o == Failure) && m.slotUse == r.round {
		r.results = withResult(r.results, o, slow)
		b.judgeRound(p, at)
	}
}

// withResult returns the counts with one more result.
func withResult(c window.Counts, o Outcome, slow bool) window.Counts {
	if o == Failure {
		c.Failures++
		c.ConsecutiveFailures++
	} else {
		c.Successes++
		c.ConsecutiveFailures = 0
	}
	if slow {
		c.Slow++
		if o == Failure {
			c.SlowFailures++
		}
	}
	return c
}

// judgeRound ends the round of a recovering breaker as soon as the missing results cannot change
// its verdict. The lock is held.
func (b *Breaker) judgeRound(p *phase, at time.Duration) {
	c, size := p.live.ramp.results, p.live.ramp.resultsNeeded(p.rules.minCalls, at, p.rules.config.Recovery)
	failed := p.rules.roundFails(c, size)
	missing := max(size-c.Calls(), 0)
	worst := window.Counts{Failures: c.Failures + missing, Slow: c.Slow + missing}
	if failed || !p.rules.roundFails(worst, size) {
		b.endRound(p, failed, at)
	}
}

// roundFails reports whether a round of the given size with these results reaches a rate. If
// FailureRate is off, a round fails if half of its calls fail.
func (r *rules) roundFails(c window.Counts, size int64) bool {
	failureRate := r.failureRate
	if failureRate == neverReached {
		failureRate = wholeRate / 2
	}
	return failureRate.reached(c.Failures, size) || r.slowRate.reached(c.Slow, size)
}

// endOverdueRound ends a round as failed if its results are still missing after ProbeTimeout. Then
// the calls hang, or their permits were forgotten. The lock is held.
func (b *Breaker) endOverdueRound(p *phase, at time.Duration) {
	if p.state == Recovering && p.live.ramp.isOverdue(at, p.rules.config.ProbeTimeout, p.live.ramp.size(p.rules.minCalls)) {
		b.endRound(p, true, at)
	}
}

// endRound ends the round of a recovering breaker, and closes or opens the breaker if the round
// decides that. The lock is held.
func (b *Breaker) endRound(p *phase, failed bool, at time.Duration) {
	c, recovery := p.live.ramp.results, p.rules.config.Recovery
	switch p.live.ramp.endRound(failed, at, recovery) {
	case recovered:
		why := fmt.Sprintf("all calls pass and no round of them failed for %v", recovery)
		b.enter(endlessStay(Closed, at), cause{reason: why, origin: byCalls}, c)
	case relapsed:
		why := fmt.Sprintf("all rounds of calls failed for %v: %d of the last %d failed", recovery, c.Failures, c.Calls())
		b.open(p, at, cause{reason: why, origin: byCalls}, c)
	case nextRound:
	}
}
