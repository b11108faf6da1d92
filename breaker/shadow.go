package breaker

import "time"

// A breaker in the state Shadow has a shadow: a breaker of the same rules that is asked about each
// call before it passes, and told the results of the calls that it let through. So the shadow
// opens, refuses, probes and closes exactly as a real breaker that sees the same calls end the same
// way. Calls that it refuses pass all the same, and their results are not told to it.
//
// It shares the lock and the changes of its breaker, which reports what it does.

// newShadow returns a closed breaker that begins with the phase.
func (b *Breaker) newShadow(p *phase) *Breaker {
	s := &Breaker{name: b.name, observed: b, mu: b.mu, changes: b.changes}
	s.clock.Epoch = b.clock.Epoch
	first := initial(shadowRules(p.rules))
	first.since = p.since
	first.prepare(s)
	s.phase.Store(first)
	return s
}

// shadowRules are the rules for a shadow: it is told outcomes, and shows nothing itself.
func shadowRules(r *rules) *rules {
	c := r.config
	c.Classify, c.OnChange, c.Active, c.Latency = nil, nil, false, false
	return newRules(c)
}

// try asks the shadow about a call that passes, and notes in its permit what it says.
func (p *phase) try(b *Breaker, m *Permit, at time.Duration) {
	s := p.shadow
	var its Permit
	if s.allow(&its, s.phase.Load(), at) != nil {
		b.shadowRefused.Add(1)
		return
	}
	m.shadow, m.flight, m.place, m.turn = its.phase, its.flight, its.place, its.turn
}

// tried tells the shadow what became of a call that it let through.
func (p *phase) tried(m *Permit, o Outcome, at time.Duration) {
	if m.shadow == nil {
		return
	}
	its := Permit{
		breaker: p.shadow, phase: m.shadow, start: m.start, after: m.after,
		flight: m.flight, place: m.place, turn: m.turn,
	}
	p.shadow.settle(&its, o, at)
}

// wouldOpen reports that the shadow opens, as long as its breaker stays in that state. The lock is held.
func (b *Breaker) wouldOpen(shadow *Breaker, since time.Duration, c Change) {
	if c.To != Open || b.phase.Load().shadow != shadow {
		return
	}
	b.shadowOpened.Add(1)
	c.Name, c.Key, c.At, c.From, c.To = b.name, b.hold.text(), b.date(since), Shadow, Shadow
	c.Reason = "would open: " + c.Reason
	b.changes.post(c)
}
