package breaker

import (
	"cmp"
	"reflect"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/internal/clock"
	"github.com/weir-go/weir/internal/friend"
	"github.com/weir-go/weir/window"
)

// membership is a breaker's link to its group.
type membership struct {
	label string // the text of the key in errors, changes and metrics
	group memberGroup
	// the breaker is the one that all keys without room share
	unguarded bool
	gate      friend.Gate // of the member of a group of gates, otherwise nil; never changes
	left      atomic.Bool // the group does not have it any more
}

// memberGroup has the methods of a group that its breakers use.
type memberGroup interface {
	rules() *rules
	forced() override // the override of the group
}

// text returns the text of the key, or "" for a breaker that is not in a group.
func (m *membership) text() string {
	if m == nil {
		return ""
	}
	return m.label
}

// isUnguarded reports whether the breaker is the one that all keys without room share.
func (m *membership) isUnguarded() bool { return m != nil && m.unguarded }

// groupOverride returns the override of the group, or none for a breaker that is not in a group.
func (m *membership) groupOverride() (o override) {
	if m != nil {
		o = m.group.forced()
	}
	return o
}

// member is a key of a group with its breaker.
type member[K comparable] struct {
	breaker *Breaker // first, because Get reads it
	membership
	of  *Group[K]
	key K
	own *ownSeries // nil if the member is among the others; never changes
}

// join fills in a new member. The lock of its shard is held.
func (m *member[K]) join(g *Group[K], key K, label string, t time.Time) {
	m.of, m.key, m.label, m.group = g, key, label, m
	m.breaker = build(g.name, g.rules.Load(), t, &m.membership)
	m.breaker.joinPlaces(&g.places)
	m.own = g.observers.takeSeries(label, m.breaker.clock.Epoch)
	if g.gates != nil {
		m.gate = g.gates.NewGate(key, m.breaker)
	}
}

// Leave ends what the group does with the member. If it has no series of its own, its counts stay
// in those of the others. The lock of its shard is held.
func (m *member[K]) Leave(shard int) {
	m.left.Store(true)
	m.breaker.leavePlaces()
	m.of.observers.leave(m.breaker, m.own, shard)
}

func (m *member[K]) rules() *rules { return m.of.rules.Load() }
func (m *member[K]) forced() (o override) {
	if !m.left.Load() {
		o = m.of.override.load()
	}
	return o
}

// unguardedMember is the membership of the breaker that all keys without room share. This breaker
// is forced closed, or forced open with the group.
type unguardedMember[K comparable] struct{ of *Group[K] }

func (m unguardedMember[K]) rules() *rules { return unguardedRules(m.of.rules.Load().config) }

func (m unguardedMember[K]) forced() override {
	o := m.of.override.load()
	if o.state != "" && o.state != ForcedOpen {
		o.state = ForcedClosed
	}
	return o
}

// IsIdle reports whether a new breaker would decide as that of the member does, and if not, for how
// long the calls in its window forbid it. used is when the member was last used. The lock of its
// shard is held.
func (m *member[K]) IsIdle(t, used time.Time) (idle bool, busy time.Duration) {
	b := m.breaker
	p, at := b.regime.Load(), b.clock.Peek(t)
	if busy = p.busyFor(at); busy > 0 || !b.mu.TryLock() {
		return false, busy
	}
	defer b.mu.Unlock()
	p = b.regime.Load()
	if p.state == Closed && b.clock.IsNew(at, p.seen(), clock.ReadTolerance) {
		b.restart(at) // changes no state, so there is nothing to deliver
		p = b.regime.Load()
	}
	if !b.isIdle(p, m.rules(), p.latest(at), t.Sub(used) >= lastCallsKept) {
		return false, 0
	}
	// A gate takes a slot and looks then whether the member has left. So the member leaves before
	// its gate is asked for slots: at least one of the two sees the other.
	m.left.Store(true)
	idle = !m.hasBusyGate()
	m.left.Store(idle)
	return idle, 0
}

// busyFor returns for how long the window is not empty if no call comes, or 0 if that is not known.
func (p *regime) busyFor(at time.Duration) time.Duration {
	if p.state != Closed || p.rules.config.LastCalls > 0 || at < p.seen()-clock.ReadTolerance {
		return 0
	}
	c := window.Counts(p.tally.Window(at, p.floor))
	if c.Calls() == 0 {
		return 0
	}
	return p.tally.NewestBucket() + p.rules.config.Window - at
}

// hasBusyGate reports whether the member has a gate whose calls hold slots in flight. A new gate
// for the same key would not count these calls.
func (m *membership) hasBusyGate() bool {
	return m.gate != nil && m.gate.IsBusy()
}

// lastCallsKept is how long an unused member is kept if its window is LastCalls and contains a
// failure, or if calls of it are in flight. Such a window does not become empty with time.
const lastCallsKept = time.Hour

// timeToEmpty is the time after which the window of an unused member is empty.
func (r *rules) timeToEmpty() time.Duration {
	if r.config.LastCalls > 0 {
		return lastCallsKept
	}
	return r.config.Window
}

// isIdle reports whether this breaker in phase p decides as a new breaker with the rules would.
// Consecutive failures and runs of failures that are older than the window do not matter. The lock
// is held.
func (b *Breaker) isIdle(p *regime, r *rules, at time.Duration, unusedForLong bool) bool {
	own := b.rareSoFar().own
	automatic, asNew := cmp.Or(p.under, p), b.overrideInEffect(own, r) == b.overrideInEffect(override{}, r)
	if p.rules != r || automatic.state != Closed || own.state != "" || !asNew {
		return false
	}
	// a permit that was forgotten does not keep its key for ever
	if b.active.Load() > 0 && !unusedForLong || b.rare.Load().isBusy() || p.isHeld(at) {
		return false
	}
	if p.shadow != nil {
		if s := p.shadow.regime.Load(); s.state != Closed || s.isHeld(at) {
			return false
		}
	}
	c := window.Counts(p.tally.Window(at, p.floor))
	if r.config.LastCalls > 0 {
		return unusedForLong || c.Failures == 0 && c.Slow == 0
	}
	return c.Calls() == 0
}

// isHeld reports whether the service asked to wait.
func (p *regime) isHeld(at time.Duration) bool { return time.Duration(p.retryAt.Load()) > at }

// recordLate records a result whose phase is not in effect any more.
func (b *Breaker) recordLate() bool {
	b.rareParts().late.Add(1)
	return false
}

// rulesFor returns the rules of c. If they equal the rules of the group, it returns the rules of
// the group, so that the member may be evicted.
func (m *membership) rulesFor(c Config) *rules {
	if m != nil && !m.unguarded {
		if r := m.group.rules(); reflect.DeepEqual(r.config, c) {
			return r
		}
	}
	return newRules(c)
}

// setGroupRules gives the breaker the rules of its group. It loads them under the lock of the
// breaker, so that each member gets the rules of the latest Reconfigure, even if two run at the
// same time or one runs in the OnChange of the other.
func (b *Breaker) setGroupRules(t time.Time) {
	at := b.at(t)
	b.mu.Lock()
	r := b.member.group.rules()
	if p := b.advance(at); p.rules != r {
		b.setRules(r, p, t)
	}
	b.mu.Unlock()
	b.deliver()
}
