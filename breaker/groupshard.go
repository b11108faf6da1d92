package breaker

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

const (
	perShard  = 128 // members, unless there are too many shards then
	maxShards = 256
	looks     = 256 // at members, for one that can be let go
	sweeps    = 4   // of members that were let go, for each new key
)

// shard is a part of the keys of a group.
type shard[K comparable] struct {
	mu      sync.RWMutex // guards what follows, to census
	byKey   map[K]*member[K]
	max     int
	places  []*member[K] // those that are kept, max at most
	hand    int          // the place looked at last
	loose   []*member[K] // those without a place that may still be in use
	sweep   int          // the one of them looked at last
	dropped int          // of the census

	// What observers read. It may hold members that were dropped since, whose counters
	// have then gone into gone: read gone first, and skip them.
	census atomic.Pointer[[]*member[K]]
	gone   atomic.Pointer[[]float64]

	fullUntil atomic.Int64 // offset from the group's epoch: nothing can be let go until then
}

// find returns the breaker of a key that is kept, and otherwise nil and whether the
// key is known at all.
func (s *shard[K]) find(key K) (b *Breaker, known bool) {
	s.mu.RLock()
	m := s.byKey[key]
	s.mu.RUnlock()
	if m == nil {
		return nil, false
	}
	return m.use(), true
}

// admit returns the breaker of the key: the one that somebody may have still, or a new
// one if there is a place for it, or nil.
func (s *shard[K]) admit(g *Group[K], key K, label string, t time.Time) *Breaker {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tidy(g, t)
	if m := s.byKey[key]; m != nil {
		if b := m.alive(); b != nil {
			return s.revive(g, m, b, t)
		}
	}
	m := &member[K]{key: key, seen: t}
	if !s.place(g, m, t) {
		return nil
	}
	m.seated = g.seat(label)
	m.label, m.rules, m.extra = label, g.rules, &g.extra
	b := m.begin(g.name, t)
	s.byKey[key] = m
	census := append(*s.census.Load(), m)
	s.census.Store(&census)
	return b
}

// revive returns the breaker of a known key, which has a place again if there is one.
// If not it is kept only once something happens to it: too many of those would break
// the bound.
func (s *shard[K]) revive(g *Group[K], m *member[K], b *Breaker, t time.Time) *Breaker {
	m.used.Store(true)
	switch {
	case !m.loose:
	case s.place(g, m, t):
		s.unlist(m)
		m.regain(b)
	case g.extra.Load() >= int64(g.config.MaxKeys) && m.kept.Load() == nil:
		return nil
	}
	return b
}

// place gives the member a place, that of another if need be.
func (s *shard[K]) place(g *Group[K], m *member[K], t time.Time) bool {
	if len(s.places) < s.max {
		s.places = append(s.places, m)
		g.placed.Add(1)
		return true
	}
	for range min(len(s.places), looks) {
		s.hand = (s.hand + 1) % len(s.places)
		if old := s.places[s.hand]; old.release(t, g) {
			old.loose, old.at = true, len(s.loose)
			s.loose = append(s.loose, old)
			s.places[s.hand] = m
			g.evictions.Add(1)
			return true
		}
	}
	// Not to look at all of them for each of many new keys.
	s.fullUntil.Store(int64(t.Sub(g.epoch) + g.rest/100))
	return false
}

// tidy looks at some of the members without a place. It drops those that the garbage
// collector took, and lets those go again that were kept for what is over by now.
func (s *shard[K]) tidy(g *Group[K], t time.Time) {
	for range min(len(s.loose), sweeps) {
		s.sweep = (s.sweep + 1) % len(s.loose)
		m := s.loose[s.sweep]
		switch {
		case m.kept.Load() != nil:
			if m.release(t, g) {
				g.extra.Add(-1)
			}
		case m.dead.Load():
			s.unlist(m)
			s.drop(m)
		}
	}
}

// unlist takes the member off the list of loose ones.
func (s *shard[K]) unlist(m *member[K]) {
	end := len(s.loose) - 1
	s.loose[m.at] = s.loose[end]
	s.loose[m.at].at = m.at
	s.loose[end] = nil
	s.loose = s.loose[:end]
	m.loose = false
}

// drop forgets a member whose breaker is no more.
func (s *shard[K]) drop(m *member[K]) {
	m.dropped.Store(true) // before its counters appear in gone
	gone := slices.Clone(*s.gone.Load())
	plus(gone, *m.last.Load())
	s.gone.Store(&gone)
	if s.byKey[m.key] == m {
		delete(s.byKey, m.key)
	}
	census := *s.census.Load()
	if s.dropped++; s.dropped > len(census)/2 {
		kept := make([]*member[K], 0, len(census)-s.dropped)
		for _, m := range census {
			if !m.dropped.Load() {
				kept = append(kept, m)
			}
		}
		s.census.Store(&kept)
		s.dropped = 0
	}
}
