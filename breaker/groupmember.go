package breaker

import (
	"math"
	"runtime"
	"sync/atomic"
	"time"
	"weak"
)

// hold is the hold of a group on a breaker, which knows it: one that was let go is
// kept again as soon as anything happens to it, by whoever has it still. So a
// breaker that the garbage collector takes had nothing to remember since.
type hold struct {
	label string                  // the key as it stands in metrics
	rules *rules                  // of all members
	kept  atomic.Pointer[Breaker] // nil once it was let go
	extra *atomic.Int64           // counts those that were let go and are kept again
}

func (h *hold) text() string {
	if h == nil {
		return ""
	}
	return h.label
}

// keep keeps the breaker, to which something has happened. It must have happened
// before the call: see member.release, which looks in the other order.
func (h *hold) keep(b *Breaker) {
	if h != nil && h.kept.Load() == nil {
		h.gain(b)
	}
}

func (h *hold) gain(b *Breaker) {
	if h.kept.CompareAndSwap(nil, b) {
		h.extra.Add(1)
	}
}

// regain is keep by the group itself, for a breaker that has a place.
func (h *hold) regain(b *Breaker) {
	if !h.kept.CompareAndSwap(nil, b) {
		h.extra.Add(-1) // it was kept already, by somebody who did not know of the place
	}
}

// newMember returns a breaker in the hold of a group.
func newMember(name string, h *hold, t0 time.Time) *Breaker {
	b := build(name, h.rules, t0, h)
	h.kept.Store(b)
	return b
}

// idle reports whether a fresh breaker would decide as this one does, whatever
// comes: it is closed, as it was made, and has nothing in its window.
func (h *hold) idle(b *Breaker, t time.Time) bool {
	p, at := b.phase.Load(), t.Sub(b.epoch)
	r := p.rules
	if p.state != Closed || r != h.rules || r.config.Initial != Closed || time.Duration(p.live.retry.Load()) > at {
		return false
	}
	c := b.counts(at)
	if c.ConsecutiveFailures > 0 && (r.consecutive != math.MaxInt || r.config.Trip != nil) {
		return false
	}
	// No time empties a window over the last calls. If they were good, that must do.
	return c.Failures == 0 && c.Slow == 0 && (c.Calls() == 0 || r.config.LastCalls > 0)
}

// member is a key of a group with its breaker. Of what has no lock of its own the
// shard's guards all.
type member[K comparable] struct {
	hold
	key     K
	weak    weak.Pointer[Breaker]
	seated  bool // has series of its own, and is kept for good
	loose   bool // has no place: it was let go, and may be kept again
	at      int  // loose: its index there
	seen    time.Time
	used    atomic.Bool               // asked for since seen
	last    atomic.Pointer[[]float64] // the counters when it was let go
	dead    *atomic.Bool              // the garbage collector took the breaker
	dropped atomic.Bool               // the counters are part of the shard's
}

// begin makes the breaker. To know when it is no more the garbage collector has to
// say so: who asks a weak pointer gets a strong one, and with it keeps what it is for
// through the collection that goes on at the time.
func (m *member[K]) begin(name string, t time.Time) *Breaker {
	b := newMember(name, &m.hold, t)
	m.weak, m.dead = weak.Make(b), new(atomic.Bool)
	runtime.AddCleanup(b, func(dead *atomic.Bool) { dead.Store(true) }, m.dead)
	return b
}

// alive returns the breaker, and nil if nobody has it any more.
func (m *member[K]) alive() *Breaker {
	if b := m.kept.Load(); b != nil {
		return b
	}
	return m.weak.Value()
}

// use returns the breaker of a member that is kept, and nil for another.
func (m *member[K]) use() *Breaker {
	b := m.kept.Load()
	if b != nil && !m.used.Load() {
		m.used.Store(true)
	}
	return b
}

// release lets go of a member that is idle and that nobody has asked for lately, and
// reports whether it did. Whoever has the breaker still may use it meanwhile.
func (m *member[K]) release(t time.Time, g *Group[K]) bool {
	b := m.kept.Load()
	switch {
	case m.seated:
		return false
	case m.used.Load():
		m.used.Store(false)
		m.seen = t
		return false
	case t.Sub(m.seen) < g.rest || !m.idle(b, t):
		return false
	}
	m.kept.Store(nil) // from here on, whatever happens has it kept again
	if !m.idle(b, t) {
		m.regain(b)
		return false
	}
	last := g.other.counters(b)
	m.last.Store(&last)
	return true
}
