package weir

import (
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// holds are the times until which services have asked not to be called, by key and in bounded
// memory. All times are nanoseconds since the epoch of the gates, and below 0 in a bubble of
// testing/synctest that uses gates from outside.
//
// An entry is made only when a service has answered, and goes with all others when the last of
// them has ended. Where there is no room, the one that ends first of some gives way: that
// service may be called too early, and nobody is held who should not be.
type holds[K comparable] struct {
	latest atomic.Int64 // when the last of them ends, but 0 while there are none: the one word that every call reads
	max    int

	mu   sync.RWMutex
	ends map[K]int64
}

// hold is one key of holds.
type hold[K comparable] struct {
	of  *holds[K]
	key K
}

// glance is how many entries are looked at to make room for another.
const glance = 16

// end returns when the hold of the key ends, and false where there is none at the time.
func (h *hold[K]) end(at int64) (int64, bool) {
	if at >= h.of.latest.Load() {
		h.of.clear(at)
		return 0, false
	}
	h.of.mu.RLock()
	defer h.of.mu.RUnlock()
	end, held := h.of.ends[h.key]
	return end, held && end > at
}

// extend makes the hold of the key last until d after the time. One that ends later stays.
func (h *hold[K]) extend(at int64, d time.Duration) {
	if d <= 0 || h.key != h.key { //nolint:gocritic // a NaN is not, and would never be found again
		return
	}
	end := at + int64(d)
	if end < at { // beyond all time
		end = math.MaxInt64
	}
	s := h.of
	s.mu.Lock()
	defer s.mu.Unlock()
	old, known := s.ends[h.key]
	switch {
	case known && old >= end:
		return
	case s.ends == nil:
		s.ends = map[K]int64{}
	case !known && len(s.ends) >= s.max:
		s.makeRoom(at)
	}
	s.ends[h.key] = end
	if latest := s.latest.Load(); latest == 0 || end > latest {
		if end == 0 {
			end = 1
		}
		s.latest.Store(end)
	}
}

// makeRoom drops what has ended of some entries, and at least the one of them that ends first.
func (s *holds[K]) makeRoom(at int64) {
	var first K
	soonest, looked := int64(math.MaxInt64), 0
	for key, end := range s.ends {
		if end <= at {
			delete(s.ends, key)
		}
		if end <= soonest {
			first, soonest = key, end
		}
		if looked++; looked == glance {
			break
		}
	}
	delete(s.ends, first)
}

// clear forgets all entries once the last of them has ended.
func (s *holds[K]) clear(at int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at >= s.latest.Load() {
		s.ends = nil
		s.latest.Store(0)
	}
}
