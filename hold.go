package weir

import (
	"hash/maphash"
	"math"
	"math/bits"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/internal/busy"
	"github.com/weir-go/weir/internal/clock"
	"github.com/weir-go/weir/internal/keyed"
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

	mu sync.RWMutex
	// a key is in use until its hold ends; the value is the share of the longest stretch, in units
	// of 2⁻⁶⁴, drawn when the hold begins
	ends keyed.Map[K, uint64]
	all  *int64 // when the hold of all keys ends; nil if there is none
}

// keyHold is the hold of one key.
type keyHold[K comparable] struct {
	table *holdTable[K]
	key   K
}

var holdSeed = maphash.MakeSeed()

// ownHold is the hold of a gate that is not in a group. It makes the table for its first hold.
type ownHold struct {
	gate *Gate
	held atomic.Pointer[keyHold[struct{}]]
}

// neverHeld is lastHold of a gate that was never held.
var neverHeld atomic.Int64

func (h *ownHold) endOf(at int64) (end int64, held bool) {
	if k := h.held.Load(); k != nil {
		end, held = k.endOf(at)
	}
	return end, held
}

func (h *ownHold) extend(at int64, d, longest time.Duration, share uint64) time.Duration {
	if h.held.Load() == nil {
		h.held.CompareAndSwap(nil, &keyHold[struct{}]{table: &holdTable[struct{}]{max: 1, epoch: h.gate.epoch}})
	}
	k := h.held.Load()
	h.gate.lastHold.Store(&k.table.last)
	return k.extend(at, d, longest, share)
}

func (*ownHold) refused() {} // only groups say which keys are refused most

// endOf returns when the hold of the key ends, or false if the key is not held at the time.
func (h *keyHold[K]) endOf(at int64) (int64, bool) {
	h.table.restartIfNew(at)
	if at >= h.table.last.Load() {
		h.table.clear(at)
		return 0, false
	}
	h.table.mu.RLock()
	defer h.table.mu.RUnlock()
	var end int64
	s := h.table.ends.Find(maphash.Comparable(holdSeed, h.key), h.key)
	held := s != nil
	if held {
		end = s.Until
	}
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
	hash := maphash.Comparable(holdSeed, h.key)
	s := t.ends.Find(hash, h.key)
	if s == nil {
		s = t.add(hash, h.key, at)
	}
	if s.Until <= at {
		s.Value = share
	}
	part, _ := bits.Mul64(s.Value, uint64(longest))
	d += time.Duration(part)
	end := at + int64(d)
	if end < at { // overflow
		end = math.MaxInt64
	}
	if end > s.Until {
		s.Until = end
		t.extendLast(at, end)
	}
	return d
}

// add makes an entry for a key without one. The lock is held.
func (t *holdTable[K]) add(hash uint64, key K, at int64) *keyed.Slot[K, uint64] {
	s, _ := t.ends.Place(hash, key, at+1)
	if !s.HasKey() && t.ends.Len() >= t.max && t.ends.Evict(sampleSize, at+1) == 0 {
		t.evictFirst()
	}
	s, _ = t.ends.Add(s, hash, key, at+1)
	s.Until = at
	return s
}

// restartIfNew ends all holds if the clock is a new one: see clock.IsNew.
func (t *holdTable[K]) restartIfNew(at int64) {
	latest := time.Duration(t.latest.Load())
	if t.last.Load() == 0 || !clock.IsNew(t.epoch, time.Duration(at), latest, clock.ReadTolerance) {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ends, t.all = keyed.Map[K, uint64]{}, nil
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

// sampleSize is the number of slots that are searched for holds that have ended, or for the one
// that ends first.
const sampleSize = 32

// evictFirst ends the hold that ends first in a sample of the holds. There are some.
func (t *holdTable[K]) evictFirst() {
	var first *keyed.Slot[K, uint64]
	for first == nil {
		for s := range t.ends.Next(sampleSize) {
			if first == nil || s.Until < first.Until {
				first = s
			}
		}
	}
	t.ends.Remove(first)
	t.evicted.Add(1)
}

// forget ends the hold of a key.
func (t *holdTable[K]) forget(key K) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s := t.ends.Find(maphash.Comparable(holdSeed, key), key); s != nil {
		t.ends.Remove(s)
	}
}

// clear deletes all entries if the last hold has ended.
func (t *holdTable[K]) clear(at int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if at >= t.last.Load() {
		t.ends, t.all = keyed.Map[K, uint64]{}, nil
		t.last.Store(0)
	}
}
