package keyed

import (
	"iter"
	"math"
	"math/bits"
)

// Map is a hash table with open addressing, so that finding an entry usually touches one cache
// line. The hash is stored beside each key, so that keys with different hashes are not compared.
// The zero value is an empty map.
//
// Each entry says until when it is in use; after that it is idle. An idle entry need not be
// removed: a new key replaces it if the search for the new key finds its slot, and a map that grows
// leaves it out. The user of the map chooses the unit of the moments.
//
// Slots move when a key is added, so a pointer to a slot is valid only until then. The caller locks
// the map: methods that change nothing may be called at the same time.
type Map[K comparable, V any] struct {
	slots []Slot[K, V]
	taken int // slots with a hash
	keys  int // slots with a key
	next  int // the slot at which Next continues

	// LastEvicted is the latest Until of an idle entry that left the map.
	LastEvicted int64
}

// Slot is an entry of a [Map], or room for one.
type Slot[K comparable, V any] struct {
	hash  uint64 // 0 if there never was an entry
	Until int64  // the entry is in use until this moment; above Gone
	Value V
	Key   K
}

// Gone is the Until of an entry that was removed. Searches continue behind it, because other keys
// may lie there.
const Gone = math.MinInt64

// HasKey reports whether there is an entry.
func (s *Slot[K, V]) HasKey() bool { return s.hash != 0 && s.Until != Gone }

// Len returns the number of entries, idle or not.
func (m *Map[K, V]) Len() int { return m.keys }

// Find returns the entry of the key, or nil if there is none.
func (m *Map[K, V]) Find(hash uint64, key K) *Slot[K, V] {
	if len(m.slots) == 0 {
		return nil
	}
	hash |= 1
	for i := m.start(hash); ; i++ {
		if i == len(m.slots) {
			i = 0
		}
		switch s := &m.slots[i]; {
		case s.hash == hash && s.Key == key && s.Until != Gone:
			return s
		case s.hash == 0:
			return nil
		}
	}
}

// start returns the slot at which the search for a hash begins. It is an even one: two slots with
// keys of 16 bytes, such as strings, and no value are one cache line.
func (m *Map[K, V]) start(hash uint64) int {
	at, _ := bits.Mul64(hash, uint64(len(m.slots)))
	return int(at) &^ 1
}

// Place returns the entry of the key. If there is none, it returns the slot for Add: the first slot
// of the search whose entry is idle from the given moment on, or the empty slot at the end of the
// search.
func (m *Map[K, V]) Place(hash uint64, key K, now int64) (s *Slot[K, V], found bool) {
	if len(m.slots) == 0 {
		m.slots = make([]Slot[K, V], minSlots)
	}
	hash |= 1
	var free *Slot[K, V]
	for i := m.start(hash); ; i++ {
		if i == len(m.slots) {
			i = 0
		}
		s = &m.slots[i]
		switch {
		case s.hash == hash && s.Key == key && s.Until != Gone:
			return s, true
		case s.hash == 0:
			if free != nil {
				return free, false
			}
			return s, false
		case free == nil && s.Until < now:
			free = s
		}
	}
}

const minSlots = 8

// Add adds an entry of the key, in the slot that Place returned for the same arguments, and returns
// its slot. Idle entries may leave for it; evicted is their number. The caller sets Until and
// Value.
func (m *Map[K, V]) Add(s *Slot[K, V], hash uint64, key K, now int64) (added *Slot[K, V], evicted int) {
	if s.hash == 0 && m.taken >= len(m.slots)*3/4 { // to keep searches short
		evicted = m.rebuild(now)
		s, _ = m.Place(hash, key, now)
	}
	if s.hash == 0 {
		m.taken++
	}
	if s.HasKey() {
		m.LastEvicted = max(m.LastEvicted, s.Until)
		evicted++
	} else {
		m.keys++
	}
	*s = Slot[K, V]{hash: hash | 1, Key: key}
	return s, evicted
}

// rebuild moves the entries that are not idle to a new array with room for more, and returns the
// number of the others.
func (m *Map[K, V]) rebuild(now int64) (evicted int) {
	old := *m
	m.keys = 0
	for s := range old.All() {
		if s.Until < now {
			m.LastEvicted = max(m.LastEvicted, s.Until)
		} else {
			m.keys++
		}
	}
	m.slots, m.taken = make([]Slot[K, V], m.keys*5/3+minSlots), m.keys
	// Slots are in the order of the hashes, so Next continues about where it was.
	m.next = int(int64(old.next) * int64(len(m.slots)) / int64(len(old.slots)))
	for s := range old.All() {
		if s.Until >= now {
			to, _ := m.Place(s.hash, s.Key, Gone)
			*to = *s
		}
	}
	return old.keys - m.keys
}

// Remove removes an entry.
func (m *Map[K, V]) Remove(s *Slot[K, V]) {
	*s = Slot[K, V]{hash: s.hash, Until: Gone}
	m.keys--
}

// Evict looks at the next slots, as Next does, and removes idle entries. It returns their number.
func (m *Map[K, V]) Evict(slots int, now int64) (evicted int) {
	for s := range m.Next(slots) {
		if s.Until < now {
			m.LastEvicted = max(m.LastEvicted, s.Until)
			m.Remove(s)
			evicted++
		}
	}
	return evicted
}

// Next yields the entries of the next slots, and begins again at the first slot after the last one.
// The loop body may remove the entry.
func (m *Map[K, V]) Next(slots int) iter.Seq[*Slot[K, V]] {
	return func(yield func(*Slot[K, V]) bool) {
		for range min(slots, len(m.slots)) {
			if m.next++; m.next >= len(m.slots) {
				m.next = 0
			}
			if s := &m.slots[m.next]; s.HasKey() && !yield(s) {
				return
			}
		}
	}
}

// All yields all entries, in no particular order. The loop body may remove the entry.
func (m *Map[K, V]) All() iter.Seq[*Slot[K, V]] {
	return func(yield func(*Slot[K, V]) bool) {
		for i := range m.slots {
			if s := &m.slots[i]; s.HasKey() && !yield(s) {
				return
			}
		}
	}
}
