package breaker

import (
	"time"

	"github.com/weir-go/weir/internal/tally"
)

// settle records a result, and reports whether it counted.
func (b *Breaker) settle(m *Permit, o Outcome, at time.Duration) bool {
	if at == unread {
		if b.clock.StartsAtEpoch() { // now does so too, for the price of one more call
			at = time.Since(b.clock.Epoch)
		} else {
			at = b.now()
		}
	}
	if tell := m.tell; tell != nil {
		m.tell = nil // it may come here again
		tell(o)
	}
	m.phase.flights.end(m.flight)
	if m.active {
		b.active.Add(-1)
	}
	p := b.phase.Load()
	switch {
	case p != m.phase && p.epoch != m.phase.epoch:
		return b.settleLate(m, o, at)
	case p.state != Closed:
		return b.settleOther(m, p, o, at)
	}
	streak, quiet := p.tally.Record(at, verdictOf(o), m.took(at))
	if m.after > 0 {
		p.ask(at, m.after)
	}
	if b.hold != nil && b.phase.Load().state == evicted { // it was evicted meanwhile
		if gone, missed := b.missed(); gone {
			return !missed || b.passResult(m, o, at, true)
		}
	}
	if o <= Failure && (!quiet || p.asked) {
		b.judge(p, at, streak)
	}
	return true
}

// settleOther is settle for a phase that is not closed.
func (b *Breaker) settleOther(m *Permit, p *phase, o Outcome, at time.Duration) bool {
	switch p.state {
	case Disabled:
		return false
	case HalfOpen:
		return b.probed(m, o, at) || b.settleLate(m, o, at)
	default: // the other overrides
	}
	p.tally.Record(at, verdictOf(o), m.took(at))
	if b.hold != nil && b.phase.Load().state == evicted { // it was evicted meanwhile
		if gone, missed := b.missed(); gone {
			return !missed || b.passResult(m, o, at, true)
		}
	}
	if p.state == Shadow {
		p.tried(m, o, at)
	}
	return true
}

// took returns how long the call took, if its beginning was noted.
func (m *Permit) took(at time.Duration) time.Duration {
	if m.phase.timed {
		return at - m.start
	}
	return tally.Untimed
}

// ask notes until when the service asks not to be called.
func (p *phase) ask(at, after time.Duration) {
	if p.rules.config.MaxRetryAfter == 0 {
		return
	}
	until := int64(add(at, min(after, p.rules.config.MaxRetryAfter)))
	for old := p.live.retry.Load(); until > old && !p.live.retry.CompareAndSwap(old, until); old = p.live.retry.Load() {
	}
}

// verdictOf returns the outcome as the tally counts it. An outcome that is none of the three is
// ignored.
func verdictOf(o Outcome) tally.Outcome { return tally.Outcome(min(o, Ignored)) }
