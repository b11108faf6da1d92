package breaker

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/internal/tally"
	"github.com/weir-go/weir/window"
)

// hold is what a breaker of a group knows of it.
type hold struct {
	label string       // the key as it stands in errors, changes and metrics
	group keeper       // nil for the breaker that all keys without room share
	gate  atomic.Value // what a group of gates keeps with the member
}

// keeper leads from a member to what its group has for its key.
type keeper interface {
	get(t time.Time) *Breaker // as Group.Get does
	peek() *Breaker           // as get does, but without making a member: of a key that has none, a new breaker that nobody else has
	common() *rules           // of all members
}

func (h *hold) text() string {
	if h == nil {
		return ""
	}
	return h.label
}

// shared reports whether the breaker is the one for all keys without room.
func (h *hold) shared() bool { return h != nil && h.group == nil }

// member is a key of a group with its breaker.
type member[K comparable] struct {
	breaker *Breaker    // first, with used: Get reads these two
	used    atomic.Bool // asked for since the group last looked
	hold
	shard  *shard[K]
	key    K
	number int64     // how many the group had admitted then
	seen   time.Time // when it looked and found that; guarded by the shard's lock
	pinned bool      // has series of its own; written under the shard's lock and the observers' lock
	calls  int64     // counted when it was last shown as part of _other; guarded by the observers' lock
	shown  bool      // has been part of what is shown as _other; guarded by the observers' lock
}

func (m *member[K]) get(t time.Time) *Breaker { return m.shard.group.getAt(t, m.key) }

func (m *member[K]) peek() *Breaker {
	m.shard.mu.RLock()
	defer m.shard.mu.RUnlock()
	if now := m.shard.byKey[m.key]; now != nil {
		return now.breaker
	}
	return build(m.breaker.name, m.common(), time.Now(), &m.hold)
}

func (m *member[K]) common() *rules { return m.shard.group.rules.Load() }

// pin keeps the member from being evicted, and reports whether it was still there.
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

// lastCallsRest is how long a member that judges its last calls is kept for a failure
// among them, when nobody asks for it: no time empties such a window.
const lastCallsRest = time.Hour

// horizon is the time after which an unused member has nothing to remember.
func (r *rules) horizon() time.Duration {
	if r.config.LastCalls > 0 {
		return lastCallsRest
	}
	return r.config.Window
}

// evict evicts the member's breaker if it is idle and nobody has asked for it since the
// last look, and reports whether it did. The shard's lock is held.
func (m *member[K]) evict(r *rules, t time.Time) bool {
	switch {
	case m.pinned:
		return false
	case m.used.Load():
		m.used.Store(false)
		m.seen = t
		return false
	}
	return m.breaker.evict(r, t, t.Sub(m.seen) >= lastCallsRest)
}

// evict makes the breaker one that passes all on, if it is idle by the rules that all
// members have, and reports whether it did.
//
// Results are recorded without a lock. So the breaker is looked at once more after the
// evicted phase is in force, and a result looks for that phase after it was recorded: of the
// two at least one sees the other.
func (b *Breaker) evict(r *rules, t time.Time, rested bool) bool {
	if !b.mu.TryLock() {
		return false // it is in use
	}
	defer b.mu.Unlock()
	p := b.phase.Load()
	at := p.latest(b.seen(t))
	if !b.idle(p, r, at, rested) {
		return false
	}
	next := p.evicted(b, at)
	b.phase.Store(next)
	if b.calls(p) != next.live.seen || !b.idle(p, r, at, rested) {
		b.phase.Store(p)
		return false
	}
	return true
}

// evictAnyway is evict for a breaker in any state.
func (b *Breaker) evictAnyway(t time.Time) {
	b.mu.Lock()
	at := b.at(t)
	p := b.pay(at)
	b.phase.Store(p.evicted(b, p.latest(at)))
	b.mu.Unlock()
	b.changes.deliver()
	b.changes.abandon()
}

// idle reports whether a new breaker of the rules would decide as this one does in phase
// p, but for a streak of failures that are older than the window. The lock is held.
func (b *Breaker) idle(p *phase, r *rules, at time.Duration, rested bool) bool {
	made := p.asMade(at) && p.state == r.config.Initial // which a Reconfigure of the group may have changed
	if p.rules != r || !made && (p.state != Closed || r.config.Initial.forced()) {
		return false // a new one would not be closed, or this one is not
	}
	if b.active.Load() > 0 || b.changes.busy() || p.busy(at) {
		return false
	}
	if p.shadow != nil {
		if s := p.shadow.phase.Load(); s.state != Closed || s.busy(at) {
			return false
		}
	}
	c := window.Counts(p.tally.Window(at, &p.floor))
	if r.config.LastCalls > 0 {
		return rested || c.Failures == 0 && c.Slow == 0
	}
	return c.Calls() == 0
}

// busy reports whether the service asked to wait, or calls are in flight that may yet be
// found to hang.
func (p *phase) busy(at time.Duration) bool {
	return time.Duration(p.live.retry.Load()) > at || p.flights.any(at)
}

// asMade reports whether the breaker has never changed its state: it is closed, or in the
// override that its config begins with, or open as that says, and nobody came afterwards.
func (p *phase) asMade(at time.Duration) bool {
	return p.epoch == 0 && (p.under == nil || p.under.epoch == 0) && (p.state != Open || p.over(at))
}

// evicted returns the phase of a breaker that is evicted in phase p, with what has been
// counted so far.
func (p *phase) evicted(b *Breaker, at time.Duration) *phase {
	next := *p
	next.state, next.needs, next.epoch = evicted, needs{}, p.epoch+1
	var last stay
	last, next.spent, next.entered = p.history(at)
	*next.spent.of(last.state) += max(at-last.since, 0)
	next.since, next.until = at, math.MaxInt64
	next.live = &live{seen: b.calls(p)}
	next.past = past{counts: p.totals()}
	next.past.counts.Refused = int64(b.refused.Load())
	if p.hasTimed() {
		times := b.lifetime(p)
		next.past.times = &times
	}
	next.tally, next.under, next.flights, next.shadow = nothing, p, nil, nil
	return &next
}

// nothing is the window of all breakers that were evicted. Nobody writes to it.
var nothing = tally.NewLast(1, 0)

// any reports whether calls are in flight that may yet be found to hang.
func (f *flights) any(at time.Duration) bool {
	if f == nil {
		return false
	}
	oldest := int64(max(at, 0)/f.grain) - int64(len(f.cells)) + 1
	for i := range f.cells {
		if c := &f.cells[i]; c.grain.Load() >= oldest && c.n.Load() > 0 {
			return true
		}
	}
	return false
}

// busy reports whether changes are being delivered, or callers wait for the next opening.
func (q *changes) busy() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.atWork || len(q.queue) > 0 || len(q.watchers) > 0
}
