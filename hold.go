package weir

import (
	"math"
	"math/bits"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/internal/busy"
	"github.com/weir-go/weir/internal/clock"
)

// holdTable stores, in bounded memory, the keys that are held and when their holds end. Times are
// nanoseconds since the epoch of the gates. They are negative in a testing/synctest bubble that
// uses a gate made outside.
//
// All entries are deleted together when the last hold has ended. If the table is full, a new hold
// evicts the hold that ends first in a sample of the holds. The service of the evicted hold may be
// called too early, but no service is held by mistake.
type holdTable[K comparable] struct {
	last   atomic.Int64 // when the last hold ends, 0 if there is none; every call reads only this
	max    int
	epoch  time.Time
	latest atomic.Int64 // when a hold last began

	// holds that were evicted before their end
	evicted atomic.Int64

	// the keys that limits or holds refuse; nil if the gate is not in a group
	refusals *busy.Sketch[K]

	mu   sync.RWMutex
	ends map[K]int64
	all  *int64 // when the hold of all keys ends; nil if there is none
}

// keyHold is the hold of one key.
type keyHold[K comparable] struct {
	table *holdTable[K]
	key   K

	share uint64 // the share of the longest stretch, in units of 2⁻⁶⁴; drawn when a hold begins
}

// endOf returns when the hold of the key ends, or false if the key is not held at the time.
func (h *keyHold[K]) endOf(at int64) (int64, bool) {
	h.table.restartIfNew(at)
	if at >= h.table.last.Load() {
		h.table.clear(at)
		return 0, false
	}
	h.table.mu.RLock()
	defer h.table.mu.RUnlock()
	end, held := h.table.ends[h.key]
	if all := h.table.all; all != nil && (!held || *all > end) {
		end, held = *all, true
	}
	return end, held && end > at
}

// extend holds the key until d after the given time, lengthened by a share of longest, unless its
// hold ends later. It returns the lengthened d. Both durations are positive or 0, and their sum
// does not overflow.
//
// longest comes from breaker.Config.CooldownJitter: see Gate.Hold. All waits of a hold are
// stretched by the share of the first one. If each wait drew a share, the largest of many shares
// would decide. A service that answers many calls would then hold all its clients for about the
// longest time, and they would retry together.
func (h *keyHold[K]) extend(at int64, d, longest time.Duration, share uint64) time.Duration {
	if h.key != h.key { //nolint:gocritic // NaN, which is never found in a map
		return d
	}
	t := h.table
	t.restartIfNew(at)
	t.mu.Lock()
	defer t.mu.Unlock()
	old, known := t.ends[h.key]
	if !known || old <= at {
		h.share = share
	}
	part, _ := bits.Mul64(h.share, uint64(longest))
	d += time.Duration(part)
	t.extend(h.key, at, d)
	return d
}

// extend is like keyHold.extend, but does not lengthen the hold by a random share. The caller holds
// the lock.
func (t *holdTable[K]) extend(key K, at int64, d time.Duration) {
	end := at + int64(d)
	if end < at { // overflow
		end = math.MaxInt64
	}
	old, known := t.ends[key]
	switch {
	case known && old >= end:
		return
	case t.ends == nil:
		t.ends = map[K]int64{}
	case !known && len(t.ends) >= t.max:
		t.makeRoom(at)
	}
	t.ends[key] = end
	t.extendLast(at, end)
}

// restartIfNew ends all holds if the clock is a new one: see clock.IsNew.
func (t *holdTable[K]) restartIfNew(at int64) {
	latest := time.Duration(t.latest.Load())
	if t.last.Load() == 0 || !clock.IsNew(t.epoch, time.Duration(at), latest, clock.ReadTolerance) {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ends, t.all = nil, nil
	t.last.Store(0)
	t.latest.Store(at)
}

// extendLast is called with the lock held. at is the time of the call.
func (t *holdTable[K]) extendLast(at, end int64) {
	t.latest.Store(at)
	if last := t.last.Load(); last == 0 || end > last {
		if end == 0 { // 0 would mean that there is no hold
			end = 1
		}
		t.last.Store(end)
	}
}

// extendAll holds all keys until d after the time, unless the hold of all keys ends later.
func (t *holdTable[K]) extendAll(at int64, d time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	end := at + int64(d)
	if end < at { // overflow
		end = math.MaxInt64
	}
	if t.all == nil || *t.all < end {
		t.all = &end
		t.extendLast(at, end)
	}
}

// refused counts a refusal of the key by its limits or by a hold.
func (h *keyHold[K]) refused() { h.table.refusals.Add(h.key) }

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
	if _, known := t.ends[first]; known { // it has not ended
		delete(t.ends, first)
		t.evicted.Add(1)
	}
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
		t.ends, t.all = nil, nil
		t.last.Store(0)
	}
}
