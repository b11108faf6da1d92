package breaker

import (
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// neverFull is an offset that is later than any real time.
const neverFull = math.MinInt64

const (
	keysPerShard = 128 // larger if there would be more than maxShards shards otherwise
	maxShards    = 256
	// The most checks to find a member that can be evicted: each member is checked twice.
	maxChecks = 2 * keysPerShard
)

// shard is a part of the keys of a group.
type shard[K comparable] struct {
	group *Group[K]
	max   int // keys

	mu      sync.RWMutex // guards the fields below, except fullAt
	byKey   map[K]*member[K]
	ring    []*member[K] // the same members, in the order in which they are checked for eviction
	hand    int          // the member that was checked last
	evicted sum          // the counts of evicted members

	// the last time at which no member could be evicted, as offset from Group.epoch, or neverFull
	fullAt atomic.Int64
}

// find returns the breaker of the key, or nil.
func (s *shard[K]) find(key K) *Breaker {
	s.mu.RLock()
	m := s.byKey[key]
	s.mu.RUnlock()
	if m == nil {
		return nil
	}
	if !m.used.Load() {
		m.used.Store(true)
	}
	return m.breaker
}

func (s *shard[K]) members() []*member[K] {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return slices.Clone(s.ring)
}

// isFull reports whether no member could be evicted a moment ago. If so, new keys need not check
// many members again.
func (s *shard[K]) isFull(t time.Time) bool {
	full := s.fullAt.Load()
	since := int64(t.Sub(s.group.epoch)) - full
	return full != neverFull && since >= 0 && since < int64(s.group.rules.Load().timeToEmpty()/100)
}

// add returns the breaker of the key, a new one if it has none, or nil if there is no room.
func (s *shard[K]) add(key K, label string, t time.Time) *Breaker {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m := s.byKey[key]; m != nil {
		return m.breaker
	}
	g := s.group
	r := g.rules.Load()
	i := s.makeRoom(r, t)
	if i < 0 {
		return nil
	}
	m := &member[K]{key: key, shard: s, usedAt: t, number: g.admissions.Add(1)}
	m.label, m.group = label, m
	m.breaker = build(g.name, r, t, &m.membership, g.override.currentOverride())
	m.breaker.joinPlaces(&g.places)
	m.used.Store(true)
	s.byKey[key], s.ring[i] = m, m
	return m.breaker
}

// makeRoom returns the index in ring for a new member, or -1 if there is no room. If ring is full,
// it evicts a member and returns the index of that member. A member that was used since the last
// check is spared once.
func (s *shard[K]) makeRoom(r *rules, t time.Time) int {
	if len(s.ring) < s.max {
		s.ring = append(s.ring, nil)
		s.group.members.Add(1)
		return len(s.ring) - 1
	}
	for range min(2*len(s.ring), maxChecks) {
		s.hand = (s.hand + 1) % len(s.ring)
		if m := s.ring[s.hand]; m.evict(r, t) {
			s.remove(m)
			s.group.evictions.Add(1)
			return s.hand
		}
	}
	s.fullAt.Store(int64(t.Sub(s.group.epoch)))
	return -1
}

// forget removes the member of the key and returns it, or nil if there is none.
func (s *shard[K]) forget(key K, t time.Time) *member[K] {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.byKey[key]
	if m == nil {
		return nil
	}
	m.breaker.evictAnyState(t)
	s.remove(m)
	i, last := slices.Index(s.ring, m), len(s.ring)-1
	s.ring[i] = s.ring[last]
	s.ring = slices.Delete(s.ring, last, last+1)
	s.hand = 0
	s.fullAt.Store(neverFull)
	s.group.members.Add(-1)
	return m
}

// remove removes a member whose breaker was evicted. Its counts stay in the sum of the evicted
// members.
func (s *shard[K]) remove(m *member[K]) {
	s.evicted.add(s.group.observers.others.countersOf(m.breaker), 1)
	delete(s.byKey, m.key)
}
