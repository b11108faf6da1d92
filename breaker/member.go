package breaker

import (
	"sync/atomic"
	"time"
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
