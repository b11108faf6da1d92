package weir

import (
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// holds keeps, by key and in bounded memory, until when services have asked not to be called. Times
// are nanoseconds since the epoch of the gates. They are negative in a testing/synctest bubble that
// uses a gate made outside.
//
// Only an answer of a service adds an entry. All entries are dropped together when the last hold has
// ended. A full table evicts, of a sample, the hold that ends first: that service may be called too
// early, and no service is held by mistake.
type holds[K comparable] struct {
	latest atomic.Int64 // when the last hold ends, 0 if there is none; the only word that every call reads
	max    int

	mu   sync.RWMutex
	ends map[K]int64
}

// hold is the entry of one key.
type hold[K comparable] struct {
	table *holds[K]
	key   K
}

// sampleSize is how many entries makeRoom looks at.
const sampleSize = 16

// end returns when the hold of the key ends. It returns false if the key is not held at the time.
func (h *hold[K]) end(at int64) (int64, bool) {
	if at >= h.table.latest.Load() {
		h.table.clear(at)
		return 0, false
	}
	h.table.mu.RLock()
	defer h.table.mu.RUnlock()
	end, held := h.table.ends[h.key]
	return end, held && end > at
}

// extend holds the key until d after the time, unless its hold ends later. d is positive.
func (h *hold[K]) extend(at int64, d time.Duration) {
	if h.key != h.key { //nolint:gocritic // a NaN would never be found again
		return
	}
	end := at + int64(d)
	if end < at { // overflow
		end = math.MaxInt64
	}
	s := h.table
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

// makeRoom deletes, of a sample of entries, those that have ended, and at least the one that ends first.
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
		if looked++; looked == sampleSize {
			break
		}
	}
	delete(s.ends, first)
}

// forget ends the hold of a key.
func (s *holds[K]) forget(key K) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.ends, key)
}

// clear deletes all entries if the last hold has ended.
func (s *holds[K]) clear(at int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at >= s.latest.Load() {
		s.ends = nil
		s.latest.Store(0)
	}
}
