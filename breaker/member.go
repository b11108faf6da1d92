package breaker

import (
	"cmp"
	"context"
	"math"
	"reflect"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/internal/clock"
	"github.com/weir-go/weir/internal/gatehook"
	"github.com/weir-go/weir/internal/tally"
	"github.com/weir-go/weir/window"
)

// membership is a breaker's link to its group.
type membership struct {
	label string       // the text of the key in errors, changes and metrics
	group memberGroup  // nil for the breaker that all keys without room share
	gate  atomic.Value // what a group of gates keeps with the member
}

// memberGroup has the methods of a group that its breakers use.
type memberGroup interface {
	get(t time.Time) *Breaker // Group.Get for the key of the breaker
	// like get, but adds no key: if the group has no such key, peek returns a new breaker that the
	// group does not keep
	peek() *Breaker
	rules() *rules
	ownUnder(b *Breaker, number uint64, f func(over, own State) State)
}

// text returns the text of the key, or "" for a breaker that is not in a group.
func (m *membership) text() string {
	if m == nil {
		return ""
	}
	return m.label
}

// isUnguarded reports whether the breaker is the one that all keys without room share.
func (m *membership) isUnguarded() bool { return m != nil && m.group == nil }

// member is a key of a group with its breaker.
type member[K comparable] struct {
	breaker *Breaker    // first, together with used, because Get reads these two
	used    atomic.Bool // Get was called since the group last checked
	membership
	shard  *shard[K]
	key    K
	number int64 // the number of keys that the group had added when it added this one

	// when the group last found that used was set; guarded by the lock of the shard
	usedAt time.Time
	// has series of its own; written under the locks of the shard and the observers
	pinned bool
	// the calls counted when _other last included it; guarded by the lock of the observers
	callsShown int64
	shown      bool // _other has included it; guarded by the lock of the observers
}

func (m *member[K]) get(t time.Time) *Breaker { return m.shard.group.getAt(t, m.key) }

func (m *member[K]) peek() *Breaker {
	m.shard.mu.RLock()
	defer m.shard.mu.RUnlock()
	if now := m.shard.byKey[m.key]; now != nil {
		return now.breaker
	}
	return build(m.breaker.name, m.rules(), time.Now(), &m.membership, m.shard.group.override.currentOverride())
}

func (m *member[K]) rules() *rules { return m.shard.group.rules.Load() }

// pin keeps the member from being evicted, and reports whether the group still has it.
func (m *member[K]) pin() bool {
	m.shard.mu.Lock()
	defer m.shard.mu.Unlock()
	m.pinned = m.shard.byKey[m.key] == m
	return m.pinned
}

func (m *member[K]) unpin() {
	m.shard.mu.Lock()
	defer m.shard.mu.Unlock()
	m.pinned = false
}

// evict evicts the member if it is idle and was not used since the last check, and reports whether
// it did. The lock of the shard is held.
func (m *member[K]) evict(r *rules, t time.Time) bool {
	switch {
	case m.pinned:
		return false
	case m.used.Load():
		m.used.Store(false)
		m.usedAt = t
		return false
	}
	return m.breaker.evict(r, t, t.Sub(m.usedAt) >= lastCallsKept)
}

// lastCallsKept is how long an unused member is kept if its window is LastCalls and contains a
// failure. Such a window does not become empty with time.
const lastCallsKept = time.Hour

// timeToEmpty is the time after which the window of an unused member is empty.
func (r *rules) timeToEmpty() time.Duration {
	if r.config.LastCalls > 0 {
		return lastCallsKept
	}
	return r.config.Window
}

// evict makes b forward everything to its successor, if b counts as idle in its group. It reports
// whether it did.
//
// Results are recorded without a lock. So evict checks b again after it has stored the evicted
// phase, and record checks for that phase after it has counted the result: at least one of the two
// sees the other.
func (b *Breaker) evict(r *rules, t time.Time, unusedForLong bool) bool {
	if !b.mu.TryLock() {
		return false // it is in use
	}
	defer b.mu.Unlock()
	p := b.phase.Load()
	at := b.clock.Peek(t)
	if p.state == Closed && p.rules.config.Initial != Open && b.clock.IsNew(at, p.seen(), clock.ReadTolerance) {
		b.restart(at) // changes no state, so there is nothing to deliver
		p = b.phase.Load()
	}
	at = p.latest(at)
	if !b.isIdle(p, r, at, unusedForLong) {
		return false
	}
	next := p.evictedPhase(b, at)
	b.phase.Store(next)
	if b.callsCounted(p) != next.live.seen || !b.isIdle(p, r, at, unusedForLong) {
		b.phase.Store(p)
		return false
	}
	b.updatePlace(next)
	b.forgetFailures()
	return true
}

// evictAnyState is like evict, but evicts a breaker in any state. It leaves the delivery of the
// changes to its caller.
func (b *Breaker) evictAnyState(t time.Time) {
	b.mu.Lock()
	at := b.clock.At(t)
	p := b.advance(at)
	next := p.evictedPhase(b, p.latest(at))
	b.phase.Store(next)
	b.updatePlace(next)
	b.forgetFailures()
	b.mu.Unlock()
}

// isIdle reports whether this breaker in phase p decides as a new breaker with the rules would.
// Consecutive failures and runs of failures that are older than the window do not matter. The lock
// is held.
func (b *Breaker) isIdle(p *phase, r *rules, at time.Duration, unusedForLong bool) bool {
	// Group.Reconfigure may have changed Initial
	asNew := p.isUnchanged(at) && p.state == r.config.Initial
	if p.rules != r || !asNew && (p.state != Closed || r.config.Initial.isOverride()) {
		return false
	}
	if b.active.Load() > 0 || b.changes.isBusy() || p.isBusy(at) || b.hasBusyGate() {
		return false
	}
	if p.shadow != nil {
		if s := p.shadow.phase.Load(); s.state != Closed || s.isBusy(at) {
			return false
		}
	}
	c := window.Counts(p.tally.Window(at, &p.floor))
	if r.config.LastCalls > 0 {
		return unusedForLong || c.Failures == 0 && c.Slow == 0
	}
	return c.Calls() == 0
}

// isBusy reports whether the service asked to wait, or calls are in flight that may hang.
func (p *phase) isBusy(at time.Duration) bool {
	return time.Duration(p.live.retryAt.Load()) > at || p.flights.anyMayHang(at)
}

// hasBusyGate reports whether the breaker has a gate whose calls hold slots in flight. A new gate
// for the same key would not count these calls.
func (b *Breaker) hasBusyGate() bool {
	if b.member == nil {
		return false
	}
	gate := b.member.gate.Load()
	return gate != nil && gatehook.IsBusy(gate)
}

// isUnchanged reports whether the breaker is still in its first state and no call waits for the end
// of its cooldown.
func (p *phase) isUnchanged(at time.Duration) bool {
	return p.epoch == 0 && (p.under == nil || p.under.epoch == 0) && (p.state != Open || p.timedOut(at))
}

// evictedPhase returns the phase of a breaker that is evicted in phase p. It keeps what was counted
// so far.
func (p *phase) evictedPhase(b *Breaker, at time.Duration) *phase {
	next := *p
	var last stay
	last, next.spent, next.entered = p.history(at)
	*next.spent.of(last.state) += max(at-last.since, 0)
	next.stay, next.epoch = endlessStay(evicted, at), p.epoch+1
	next.timing = timing{}
	next.derive(b)
	next.live = &mutableState{seen: b.callsCounted(p)}
	next.past = endedWindows{counts: p.totals()}
	next.past.counts.Refused = int64(b.refused.Load())
	if p.hasLatency() {
		sum := b.lifetimeLatency(p)
		next.past.latency = &sum
	}
	next.tally, next.under, next.flights, next.shadow, next.incidents = noCallsTally, p, nil, nil, nil
	return &next
}

// noCallsTally is the window of all evicted breakers. It is never written to.
var noCallsTally = tally.NewLast(1, 0)

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
