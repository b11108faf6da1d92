package breaker

import (
	"math"
	"reflect"
	"time"
)

// A breaker that was evicted passes everything on to the one that its key has now: calls and
// changes to the one that Group.Get returns, which may be new, and questions to the one that
// the group has already.

// current returns the breaker to ask: b, or after b was evicted the one that its key has.
func (b *Breaker) current() *Breaker {
	for b.phase.Load().state == evicted {
		b = b.hold.group.peek()
	}
	return b
}

// live returns the breaker to call: b, or the one that its key gets after b was evicted.
func (b *Breaker) live() *Breaker {
	for b.phase.Load().state == evicted {
		b = b.hold.group.get(time.Now())
	}
	return b
}

// fresh returns the time of an offset at which an evicted breaker is used, or that of its eviction
// if the offset is stale: the clock of the next breaker must not begin there.
func (b *Breaker) fresh(at time.Duration) time.Time { return b.date(b.phase.Load().latest(at)) }

// again returns the breaker that the key of an evicted one gets, and the offset by its
// epoch.
func (b *Breaker) again(at time.Duration) (next *Breaker, offset time.Duration) {
	t := b.fresh(at)
	next = b.hold.group.get(t)
	offset = next.at(t)
	return next, offset
}

// settleLate books a result that does not belong to the phase in force, or comes after
// the breaker was evicted.
func (b *Breaker) settleLate(m *Permit, o Outcome, at time.Duration) bool {
	b.mu.Lock() // an eviction may be under way, and taken back
	p := b.phase.Load()
	mine := p == m.phase || p.epoch == m.phase.epoch
	if p.state != evicted && !(mine && p.state != HalfOpen) {
		b.late.Add(1)
		b.mu.Unlock()
		return false
	}
	b.mu.Unlock()
	if p.state != evicted { // the eviction was taken back
		m.flight, m.active = unwatched, false
		return b.settle(m, o, at)
	}
	return b.passResult(m, o, at, p.epoch == m.phase.epoch+1)
}

// missed reports, after a call was counted, whether the breaker was evicted, for good, and whether
// the eviction has missed the call: then the caller passes it on. Which of several calls that come at
// this moment was missed does not matter.
func (b *Breaker) missed() (gone, missed bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := b.phase.Load()
	if p.state != evicted {
		return false, false
	}
	if p.live.seen >= b.calls(p.under) {
		return true, false
	}
	p.live.seen++
	return true, true
}

// calls returns how many calls were counted up to phase p, refused ones too.
func (b *Breaker) calls(p *phase) int64 {
	c := p.totals()
	return c.Successes + c.Failures + c.Ignored + int64(b.refused.Load())
}

// passResult books the result of a call that an evicted breaker let through with the one
// that its key has now; as late if it was late already, or would be there.
func (b *Breaker) passResult(m *Permit, o Outcome, at time.Duration, inTime bool) bool {
	next, offset := b.again(at)
	n := Permit{breaker: next, phase: next.phase.Load(), after: m.after, flight: unwatched, start: offset - (at - m.start)}
	switch n.phase.state {
	case Closed, ForcedClosed, Disabled, Shadow:
		inTime = inTime && n.phase.epoch == 0 // else it has changed its state since the call began
	default:
		inTime = false
	}
	if s := n.phase.shadow; s != nil && (m.shadow != nil || m.phase.state != Shadow) {
		if its := s.phase.Load(); its.state == Closed && its.epoch == 0 { // as if it had let the call through
			n.shadow = its
		}
	}
	if !m.phase.timed { // when it began is not known
		n.phase, n.shadow = n.phase.untimed(), n.shadow.untimed()
	}
	if !inTime {
		n.phase = &phase{epoch: math.MaxUint64} // that of no breaker
	}
	return next.settle(&n, o, offset)
}

// untimed returns the phase as a permit has it whose call is not timed.
func (p *phase) untimed() *phase {
	if p == nil || !p.timed {
		return p
	}
	next := *p
	next.timed = false
	return &next
}

// rulesFor returns the rules of a config: those of the group, if they are the same, so that
// the member is no other than its fellows.
func (h *hold) rulesFor(c Config) *rules {
	if h != nil && h.group != nil {
		if r := h.group.common(); reflect.DeepEqual(r.config, c) {
			return r
		}
	}
	return newRules(c)
}

// obey gives the breaker the rules of its group, unless it was evicted. They are read under the
// breaker's lock: of two that reconfigure the group at once, or one in the other's OnChange, the
// later config is then the last that each member gets.
func (b *Breaker) obey(common func() *rules, t time.Time) {
	b.mu.Lock()
	r := common()
	if p := b.pay(b.at(t)); p.state != evicted && p.rules != r {
		b.follow(r, p, t)
	}
	b.mu.Unlock()
	b.changes.deliver()
}
