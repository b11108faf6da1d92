package breaker

import (
	"cmp"
	"context"
	"math"
	"reflect"
	"time"

	"github.com/weir-go/weir/internal/clock"
)

// The successor of an evicted breaker is the breaker that its key has now. Methods that make calls,
// record results or change the breaker use forCalls: it returns the breaker of Group.Get, which may
// be new. Methods that only read use forReads: it adds no breaker to the group.

// forReads returns the breaker for methods that only read: b, or the successor of an evicted b.
func (b *Breaker) forReads() *Breaker {
	for b.phase.Load().state == evicted {
		b = b.member.group.peek()
	}
	return b
}

// forCalls returns the breaker for calls, results and changes: b, or the successor of an evicted b.
func (b *Breaker) forCalls() *Breaker {
	for b.phase.Load().state == evicted {
		b = b.member.group.get(time.Now())
	}
	return b
}

// successor returns the breaker that the key of an evicted b has now or gets, and the given time as
// an offset by the clock of that breaker.
func (b *Breaker) successor(at time.Duration) (next *Breaker, offset time.Duration) {
	t := b.latestTime(at)
	next = b.member.group.get(t)
	offset = next.at(t)
	return next, offset
}

// latestTime returns the time of an offset, or of the eviction of b if the offset is stale: the
// clock of a new breaker must not begin at a stale time.
func (b *Breaker) latestTime(at time.Duration) time.Time {
	p := b.phase.Load()
	if !b.clock.IsNew(at, p.since, clock.ReadTolerance) {
		at = p.latest(at)
	}
	return b.date(at)
}

// recordLate records a result whose phase is not in effect any more, or whose breaker was evicted.
func (b *Breaker) recordLate(ctx context.Context, m *Permit, o Outcome, at time.Duration, f *failure) bool {
	b.mu.Lock() // wait for an eviction under way, which may be undone
	p := b.phase.Load()
	samePhase := p == m.phase || p.epoch == m.phase.epoch
	if p.state != evicted && !(samePhase && p.state != HalfOpen) {
		b.late.Add(1)
		b.mu.Unlock()
		return false
	}
	b.mu.Unlock()
	if p.state != evicted { // the eviction was undone
		m.flight, m.active = unwatchedSlice, false
		return b.record(ctx, m, o, at, f)
	}
	return b.recordWithSuccessor(ctx, m, o, at, p.epoch == m.phase.epoch+1, f)
}

// missedByEviction is called after a call was counted. It reports whether the breaker was evicted,
// and whether the eviction has missed the call, which the caller must then pass on. If several
// calls are counted at this moment, it does not matter which of them were missed.
func (b *Breaker) missedByEviction() (gone, missed bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := b.phase.Load()
	if p.state != evicted {
		return false, false
	}
	if p.live.seen >= b.callsCounted(p.under) {
		return true, false
	}
	p.live.seen++
	return true, true
}

// callsCounted returns the number of calls that were counted up to phase p, including refused
// calls.
func (b *Breaker) callsCounted(p *phase) int64 {
	c := p.totals()
	return c.Successes + c.Failures + c.Ignored + int64(b.refused.Load())
}

// recordWithSuccessor passes the result of a call that an evicted breaker let through to the
// successor. The result is late there if it was late already, or if the successor has changed its
// state.
func (b *Breaker) recordWithSuccessor(ctx context.Context, m *Permit, o Outcome, at time.Duration, inTime bool, f *failure) bool {
	next, offset := b.successor(at)
	n := Permit{breaker: next, phase: next.phase.Load(), retryAfter: m.retryAfter, flight: unwatchedSlice, start: offset - (at - m.start)}
	inTime = inTime && n.phase.passes == allCalls && n.phase.epoch == 0
	if s := n.phase.shadow; s != nil && (m.shadowPhase != nil || m.phase.state != Shadow) {
		if sp := s.phase.Load(); sp.state == Closed && sp.epoch == 0 {
			// the shadow would have let the call through
			n.shadowPhase = sp
		}
	}
	if !m.phase.timed || n.phase.measured && !m.phase.measured {
		// the start of the call is not known
		n.phase, n.shadowPhase = n.phase.untimedPhase(), n.shadowPhase.untimedPhase()
	}
	if !inTime {
		n.phase = &phase{epoch: math.MaxUint64} // no breaker has this epoch
	} else if s := cmp.Or(n.shadowPhase, n.phase).sample; s != nil {
		n.number = s.begun.Add(1)
	}
	return next.record(ctx, &n, o, offset, f)
}

// untimedPhase returns the phase for the permit of a call that is not timed.
func (p *phase) untimedPhase() *phase {
	if p == nil || !p.timed {
		return p
	}
	next := *p
	next.timed, next.measured = false, false
	return &next
}

// rulesFor returns the rules of c. If they equal the rules of the group, it returns the rules of
// the group, so that the member may be evicted.
func (m *membership) rulesFor(c Config) *rules {
	if m != nil && m.group != nil {
		if r := m.group.rules(); reflect.DeepEqual(r.config, c) {
			return r
		}
	}
	return newRules(c)
}

// setGroupRules gives the breaker the rules of its group, unless it was evicted. It loads them
// under the lock of the breaker, so that each member gets the rules of the latest Reconfigure, even
// if two run at the same time or one runs in the OnChange of the other.
func (b *Breaker) setGroupRules(groupRules func() *rules, t time.Time) {
	at := b.at(t)
	b.mu.Lock()
	r := groupRules()
	if p := b.advance(at); p.state != evicted && p.rules != r {
		b.setRules(r, p, t)
	}
	b.mu.Unlock()
	b.changes.deliver()
}
