package breaker

import (
	"fmt"
	"time"

	"github.com/weir-go/weir/window"
)

// allowShare lets a call of a recovering breaker pass if it belongs to the share that passes. If
// all calls pass and none of their rounds failed for Recovery, it closes the breaker.
func (b *Breaker) allowShare(m *Permit, p *phase, at time.Duration) error {
	if p.flights != nil && b.openIfHung(p, at) {
		return b.allowAt(m, b.phase.Load(), at)
	}
	b.mu.Lock()
	p = b.advance(at)
	passes := false
	if p.state == Recovering {
		r, c := p.live.ramp, &p.rules.config
		switch {
		case r.oneOf == 1 && at-r.failedAt >= c.Recovery:
			why := fmt.Sprintf("all calls pass and no round of them failed for %v", c.Recovery)
			p = b.enter(endlessStay(Closed, at), cause{reason: why, origin: byCalls}, p.counts(at))
		case r.isOverdue(at, c.ProbeTimeout): // a missing result is no failure
			r.grow()
		}
		if passes = r.passes(at); passes {
			m.slotUse = r.pass(at)
		} else {
			r.skipped++
		}
	}
	b.mu.Unlock()
	b.changes.deliver()
	switch {
	case p.state != Recovering: // the state has changed since the caller loaded the phase
		m.slotUse = 0
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
		p.live.ramp.skipped++
	}
	b.mu.Unlock()
	if refused {
		return b.refuse(p.refusal)
	}
	return nil
}

// addRamped adds the result of a call of a recovering breaker. If all calls pass, the results since
// the share last fell are judged as those of a closed breaker are. Otherwise the first calls of the
// round are. The lock is held.
func (b *Breaker) addRamped(m *Permit, p *phase, o Outcome, took, at time.Duration) {
	r := p.live.ramp
	judged := o == Success || o == Failure
	if r.trusted.end(m.slotUse) && judged {
		e := evidence{pending: r.trusted.pending()}
		if run := p.addToRun(o == Failure); o == Failure {
			e.run = run
		}
		e.streak, _ = r.counted.Record(at, verdictOf(o), took)
		e.calls, e.slow = r.counted.Rates(at, &r.floor)
		if r.oneOf == 1 && p.rules.failing(&e) {
			b.failRound(p, window.Counts{}, at)
		}
	}
	if r.round.end(m.slotUse) && judged && r.oneOf > 1 {
		r.results = withResult(r.results, o, took > p.rules.config.SlowCall)
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

// judgeRound ends the round of a recovering breaker of whose calls a share passes, if its results
// decide it. The lock is held.
func (b *Breaker) judgeRound(p *phase, at time.Duration) {
	r := p.live.ramp
	failed, decided := p.rules.verdict(r.results, r.round.pending(), 1)
	switch {
	case !decided:
	case failed:
		b.failRound(p, r.results, at)
	default:
		r.goodAt = max(r.goodAt, at)
		r.grow()
	}
}

// failRound halves the share of a recovering breaker. It opens the breaker if the share was
// smallest and no round was good for Recovery. The lock is held.
func (b *Breaker) failRound(p *phase, c window.Counts, at time.Duration) {
	r, recovery := p.live.ramp, p.rules.config.Recovery
	relapsed := r.oneOf == leastShare && at-r.goodAt >= recovery
	r.shrink(at)
	p.live.run.Clear()
	if relapsed {
		why := fmt.Sprintf("all rounds of calls failed for %v: %d of the last %d failed", recovery, c.Failures, c.Calls())
		b.open(p, at, cause{reason: why, origin: byCalls}, c)
	}
}
