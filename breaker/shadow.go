package breaker

import (
	"context"
	"time"
)

// A breaker in the state Shadow has a shadow: a breaker with the same rules that decides about each
// call and records the results of the calls that it would let through. So the shadow opens,
// refuses, probes and closes exactly as a breaker with the same calls and results. A call that the
// shadow refuses passes all the same, and the shadow does not record its result.
//
// The shadow uses the lock and the change queue of its breaker, which reports what the shadow does.

// newShadow returns a closed breaker that begins with phase p.
func (b *Breaker) newShadow(p *regime) *Breaker {
	s := &Breaker{name: b.name, shadowOf: b, withShadow: b.withShadow}
	s.clock.Epoch = b.clock.Epoch
	first := firstPhase(shadowRules(p.rules))
	first.phase.since = p.since
	first.tally.BeginAt(min(p.since, 0))
	first.complete(s)
	s.regime.Store(first)
	return s
}

// shadowRules returns the rules of the shadow, which is given outcomes and has no metrics.
func shadowRules(r *rules) *rules {
	c := r.config
	c.Classify, c.OnChange, c.Latency = nil, nil, false
	c.KeepFailures, c.DescribeFailure, c.Trace = 0, nil, nil
	return newRules(c)
}

// askShadow asks the shadow whether it would allow a call, and stores a positive answer in the
// permit.
func (p *regime) askShadow(b *Breaker, m *Permit, at time.Duration) {
	var s Permit
	if p.shadow.allow(&s, p.shadow.regime.Load(), at) != nil {
		b.rareParts().shadowRefused.Add(1)
		return
	}
	m.shadowIssuer, m.slot, m.slotUse = s.issuer, s.slot, s.slotUse
	m.number, m.cohortNumber = s.number, s.cohortNumber
}

// tellShadow records the result of a call with the shadow, if the shadow let the call through.
func (p *regime) tellShadow(ctx context.Context, m *Permit, o Outcome, at time.Duration) {
	if m.shadowIssuer == nil {
		return
	}
	s := Permit{
		breaker: p.shadow, issuer: m.shadowIssuer, start: m.start, retryAfter: m.retryAfter,
		slot: m.slot, slotUse: m.slotUse, number: m.number, cohortNumber: m.cohortNumber,
	}
	p.shadow.record(ctx, &s, o, at, nil)
}

// reportOpening reports that the shadow opens, if it is still the shadow of b. The lock is held.
func (b *Breaker) reportOpening(shadow *Breaker, since time.Duration, c Change) {
	if c.To != Open || b.regime.Load().shadow != shadow {
		return
	}
	b.rareParts().shadowOpened.Add(1)
	c.Name, c.Key, c.At, c.From, c.To = b.name, b.member.text(), b.date(since), Shadow, Shadow
	c.Reason = "would open: " + c.Reason
	b.changes().push(c)
}
