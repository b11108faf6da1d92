// Package keyed has the table of all groups: one entry per key, in bounded memory, where an entry
// that is idle makes room for a new key. A [Map] keeps values in place; each entry says until when
// it is in use. A [Table] keeps values that others point to, and asks them whether they are idle.
package keyed

import (
	"hash/maphash"
	"iter"
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// Value is what a table keeps for a key, as a pointer. The lock of a shard is held during both
// methods, so they must not use the table.
type Value[V any] interface {
	*V
	// IsIdle reports whether a new value would do the same as this one from the time t on. used is
	// when a check last found that the value had been looked up. A value that is not idle is not
	// asked again for the time busy, but for at most maxBusy.
	IsIdle(t, used time.Time) (idle bool, busy time.Duration)
	// Leave is called when the value leaves the table. It was in the shard of the given number.
	Leave(shard int)
}

// Table has at most as many values of type V as New was told. All methods are safe for concurrent
// use.
//
// A full table evicts an entry for a new key: one that is idle, as its value says, and if possible
// one that was not looked up lately. Entries are checked in the order of a clock, as in Corbató, A
// Paging Experiment with the Multics System (1968).
type Table[K comparable, V any, P Value[V]] struct {
	max       int
	epoch     time.Time
	seed      maphash.Seed
	shards    []shard[K, V, P]
	count     atomic.Int64
	evictions atomic.Int64
}

const (
	keysPerShard = 128 // more if there would be more than maxShards shards otherwise
	maxShards    = 256
	// The most checks to make room for a new key: each value is checked twice.
	maxChecks = 2 * keysPerShard

	// neverFull is an offset that is later than any real time.
	neverFull = math.MinInt64

	// maxBusy bounds for how long a value is not asked whether it is idle.
	maxBusy = 10 * time.Second
	// notBusy is the Until of an entry whose value is to be asked: before any real time.
	notBusy = Gone + 1
)

// shard is a part of the keys. Each part fills up separately.
type shard[K comparable, V any, P Value[V]] struct {
	max    int
	number int
	// the last time at which no value could be evicted, as offset from the epoch, or neverFull
	fullAt atomic.Int64

	mu sync.RWMutex // guards the entries
	// Until is the offset at which the value may be asked whether it is idle.
	entries Map[K, *entry[V]]
}

type entry[V any] struct {
	value V           // first, together with used, because Get reads these two
	used  atomic.Bool // the value was looked up since it was last checked
	// when the last check found that used was set; guarded by the lock of the shard
	usedAt time.Time
}

// New returns a table for at most maxKeys keys, at least 1. The times given to its methods are
// about those since epoch.
func New[K comparable, V any, P Value[V]](maxKeys int, epoch time.Time) *Table[K, V, P] {
	t := &Table[K, V, P]{
		max: maxKeys, epoch: epoch, seed: maphash.MakeSeed(),
		shards: make([]shard[K, V, P], min((maxKeys+keysPerShard-1)/keysPerShard, maxShards)),
	}
	for i := range t.shards {
		s := &t.shards[i]
		s.number, s.max = i, (maxKeys+i)/len(t.shards)
		s.fullAt.Store(neverFull)
	}
	return t
}

func (t *Table[K, V, P]) shard(key K) (s *shard[K, V, P], hash uint64) {
	hash = maphash.Comparable(t.seed, key)
	return &t.shards[hash%uint64(len(t.shards))], hash
}

// find returns the entry of the key, or nil. The lock of the shard is held.
func (s *shard[K, V, P]) find(hash uint64, key K) *entry[V] {
	if slot := s.entries.Find(hash, key); slot != nil {
		return slot.Value
	}
	return nil
}

// Get looks up the value of the key, nil if there is none. It allocates nothing.
func (t *Table[K, V, P]) Get(key K) P {
	s, hash := t.shard(key)
	s.mu.RLock()
	e := s.find(hash, key)
	s.mu.RUnlock()
	if e == nil {
		return nil
	}
	if !e.used.Load() {
		e.used.Store(true)
	}
	return &e.value
}

// Add looks up the value of the key. If there is none, it adds a value, which fill fills in under
// the lock of the shard. It returns nil if there is no room. The key must equal itself, which a NaN
// does not.
func (t *Table[K, V, P]) Add(key K, now time.Time, fill func(P)) P {
	s, hash := t.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.find(hash, key); e != nil {
		e.used.Store(true)
		return &e.value
	}
	if !t.makeRoom(s, now) {
		s.fullAt.Store(int64(now.Sub(t.epoch)))
		return nil
	}
	e := &entry[V]{usedAt: now}
	e.used.Store(true)
	fill(&e.value)
	slot, _ := s.entries.Place(hash, key, notBusy)
	slot, _ = s.entries.Add(slot, hash, key, notBusy)
	slot.Value, slot.Until = e, notBusy
	t.count.Add(1)
	return &e.value
}

// WasFull reports whether there was no room for such a key at the time now, or for less than pause
// before, so that not every new key checks many values again.
func (t *Table[K, V, P]) WasFull(key K, now time.Time, pause time.Duration) bool {
	s, _ := t.shard(key)
	full := s.fullAt.Load()
	since := int64(now.Sub(t.epoch)) - full
	return full != neverFull && since >= 0 && since < int64(pause)
}

// makeRoom reports whether there is room for a new entry. If the shard is full, it evicts an entry.
// The lock of the shard is held.
func (t *Table[K, V, P]) makeRoom(s *shard[K, V, P], now time.Time) bool {
	if s.entries.Len() < s.max {
		return true
	}
	at, checks := int64(now.Sub(t.epoch)), maxChecks
	for range 2 { // an entry that was looked up is spared once
		for slot := range s.entries.Next(math.MaxInt) {
			if at < slot.Until && slot.Until <= at+int64(maxBusy) {
				continue
			}
			if t.evictIdle(s, slot, now) {
				return true
			}
			if checks--; checks == 0 {
				return false
			}
		}
	}
	return false
}

// evictIdle evicts an entry that is idle and was not looked up since the last check. It reports
// whether it did. The lock of the shard is held.
func (t *Table[K, V, P]) evictIdle(s *shard[K, V, P], slot *Slot[K, *entry[V]], now time.Time) bool {
	e := slot.Value
	if e.used.Load() {
		e.used.Store(false)
		e.usedAt = now
		return false
	}
	idle, busy := P(&e.value).IsIdle(now, e.usedAt)
	if !idle {
		slot.Until = int64(now.Sub(t.epoch)) + int64(min(busy, maxBusy))
		return false
	}
	t.remove(s, slot)
	t.evictions.Add(1)
	return true
}

// remove removes an entry. The lock of the shard is held.
func (t *Table[K, V, P]) remove(s *shard[K, V, P], slot *Slot[K, *entry[V]]) {
	e := slot.Value
	s.entries.Remove(slot)
	P(&e.value).Leave(s.number)
	t.count.Add(-1)
}

// Forget removes the value of a key, idle or not, and returns it, or nil if there is none.
func (t *Table[K, V, P]) Forget(key K) P {
	s, hash := t.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	slot := s.entries.Find(hash, key)
	if slot == nil {
		return nil
	}
	e := slot.Value
	t.remove(s, slot)
	s.fullAt.Store(neverFull)
	return &e.value
}

// EvictIdle does what a full table does to make room, but for one value: it evicts the value if
// that is idle and was not looked up since the last check.
func (t *Table[K, V, P]) EvictIdle(key K, now time.Time) {
	s, hash := t.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if slot := s.entries.Find(hash, key); slot != nil && t.evictIdle(s, slot, now) {
		s.fullAt.Store(neverFull)
	}
}

// All yields the keys and their values, in no particular order. Keys that are added meanwhile may
// be missing. No lock is held while the loop body runs.
func (t *Table[K, V, P]) All() iter.Seq2[K, P] {
	return func(yield func(K, P) bool) {
		for i := range t.shards {
			s := &t.shards[i]
			s.mu.RLock()
			entries := make([]Slot[K, *entry[V]], 0, s.entries.Len())
			for slot := range s.entries.All() {
				entries = append(entries, *slot)
			}
			s.mu.RUnlock()
			for i := range entries {
				if !yield(entries[i].Key, &entries[i].Value.value) {
					return
				}
			}
		}
	}
}

// Shards is the number of shards, which are numbered from 0.
func (t *Table[K, V, P]) Shards() int { return len(t.shards) }

// AppendShard appends the values of one shard to values. It calls read, while no value enters or
// leaves the shard.
func (t *Table[K, V, P]) AppendShard(number int, values []P, read func()) []P {
	s := &t.shards[number]
	s.mu.RLock()
	defer s.mu.RUnlock()
	for slot := range s.entries.All() {
		values = append(values, &slot.Value.value)
	}
	read()
	return values
}

// Len returns the number of keys.
func (t *Table[K, V, P]) Len() int { return int(t.count.Load()) }

// Count returns a pointer to the number of keys.
func (t *Table[K, V, P]) Count() *atomic.Int64 { return &t.count }

// Evictions returns how many values were evicted.
func (t *Table[K, V, P]) Evictions() int64 { return t.evictions.Load() }

// IsFull reports whether the table has as many keys as it may have.
func (t *Table[K, V, P]) IsFull() bool { return t.Len() >= t.max }
