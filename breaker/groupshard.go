package breaker

import (
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// neverFull stands for an offset that no time has.
const neverFull = math.MinInt64

const (
	perShard  = 128 // members, unless there are too many shards then
	maxShards = 256
	looks     = 2 * perShard // at members, for one that can be evicted: each twice
)

// shard is a part of the keys of a group.
type shard[K comparable] struct {
	group *Group[K]
	max   int // members

	mu    sync.RWMutex // guards what follows, but for fullAt
	byKey map[K]*member[K]
	ring  []*member[K] // the same members, in the order in which they are looked at
	hand  int          // the one looked at last
	gone  account      // of the members that were evicted

	fullAt atomic.Int64 // offset from the group's epoch, or neverFull: no member could be evicted then
}

// find returns the breaker of a key that has one, and nil otherwise.
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

// list appends the members.
func (s *shard[K]) list(to []*member[K]) []*member[K] {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return append(to, s.ring...)
}

// isFull reports whether no member could be evicted a moment ago, so that not each of
// many new keys looks at all of them.
func (s *shard[K]) isFull(t time.Time) bool {
	full := s.fullAt.Load()
	since := int64(t.Sub(s.group.epoch)) - full
	return full != neverFull && since >= 0 && since < int64(s.group.rules.Load().horizon()/100)
}

// admit returns the breaker of the key: the one that it has by now, or a new one if there
// is room for it, or nil.
func (s *shard[K]) admit(key K, label string, t time.Time) *Breaker {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m := s.byKey[key]; m != nil {
		return m.breaker
	}
	g := s.group
	r := g.rules.Load()
	place := s.place(r, t)
	if place < 0 {
		return nil
	}
	m := &member[K]{key: key, shard: s, seen: t, number: g.admitted.Add(1)}
	m.label, m.group = label, m
	m.breaker = build(g.name, r, t, &m.hold)
	m.used.Store(true)
	s.byKey[key], s.ring[place] = m, m
	return m.breaker
}

// place returns a place in the ring for a new member, that of another if need be, and −1
// if there is none. Members that were asked for since the last look get a second chance.
func (s *shard[K]) place(r *rules, t time.Time) int {
	if len(s.ring) < s.max {
		s.ring = append(s.ring, nil)
		s.group.members.Add(1)
		return len(s.ring) - 1
	}
	for range min(2*len(s.ring), looks) {
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

// forget removes the key's member, which it returns, or nil if there is none.
func (s *shard[K]) forget(key K, t time.Time) *member[K] {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.byKey[key]
	if m == nil {
		return nil
	}
	m.breaker.evictAnyway(t)
	s.remove(m)
	place, last := slices.Index(s.ring, m), len(s.ring)-1
	s.ring[place] = s.ring[last]
	s.ring = slices.Delete(s.ring, last, last+1)
	s.hand = 0
	s.fullAt.Store(neverFull)
	s.group.members.Add(-1)
	return m
}

// remove removes a member whose breaker was evicted. Its calls stay in the sum.
func (s *shard[K]) remove(m *member[K]) {
	s.gone.plus(s.group.watching.others.counted(m.breaker), 1)
	delete(s.byKey, m.key)
}
