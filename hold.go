package weir

import (
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// holdTable stores, in bounded memory, the keys that are held and when their holds end. Times are
// nanoseconds since the epoch of the gates. They are negative in a testing/synctest bubble that
// uses a gate made outside.
//
// All entries are deleted together when the last hold has ended. If the table is full, a new hold
// evicts, of a sample, the hold that ends first. That service may be called too early, but no
// service is held by mistake.
type holdTable[K comparable] struct {
	last atomic.Int64 // when the last hold ends, 0 if there is none; every call reads only this
	max  int

	mu   sync.RWMutex
	ends map[K]int64
}

// keyHold is the hold of one key.
type keyHold[K comparable] struct {
	table *holdTable[K]
	key   K
}

// end returns when the hold of the key ends, or false if the key is not held at the time.
func (h *keyHold[K]) end(at int64) (int64, bool) {
	if at >= h.table.last.Load() {
		h.table.clear(at)
		return 0, false
	}
	h.table.mu.RLock()
	defer h.table.mu.RUnlock()
	end, held := h.table.ends[h.key]
	return end, held && end > at
}

// extend holds the key until d after the time, unless its hold ends later. d is positive.
func (h *keyHold[K]) extend(at int64, d time.Duration) {
	if h.key != h.key { //nolint:gocritic // NaN, which could not be found again
		return
	}
	end := at + int64(d)
	if end < at { // overflow
		end = math.MaxInt64
	}
	t := h.table
	t.mu.Lock()
	defer t.mu.Unlock()
	old, known := t.ends[h.key]
	switch {
	case known && old >= end:
		return
	case t.ends == nil:
		t.ends = map[K]int64{}
	case !known && len(t.ends) >= t.max:
		t.makeRoom(at)
	}
	t.ends[h.key] = end
	if last := t.last.Load(); last == 0 || end > last {
		if end == 0 { // means that there is none
			end = 1
		}
		t.last.Store(end)
	}
}

// sampleSize is the number of entries that makeRoom looks at.
const sampleSize = 16

// makeRoom deletes, of a sample of entries, those that have ended and the one that ends first.
func (t *holdTable[K]) makeRoom(at int64) {
	var first K
	firstEnd, looked := int64(math.MaxInt64), 0
	for key, end := range t.ends {
		if end <= at {
			delete(t.ends, key)
		}
		if end <= firstEnd {
			first, firstEnd = key, end
		}
		if looked++; looked == sampleSize {
			break
		}
	}
	delete(t.ends, first)
}

// forget ends the hold of a key.
func (t *holdTable[K]) forget(key K) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.ends, key)
}

// clear deletes all entries if the last hold has ended.
func (t *holdTable[K]) clear(at int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if at >= t.last.Load() {
		t.ends = nil
		t.last.Store(0)
	}
}
