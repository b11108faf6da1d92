package limiter

import "math/bits"

// table is a hash table of buckets with open addressing, so that finding a bucket usually touches
// one cache line. The hash is stored beside each key, so that keys with different hashes are not
// compared.
//
// An idle bucket is one that is full again. It need not be removed: a new key replaces it if the
// search for the new key finds its slot, and rebuild leaves it out.
type table[K comparable] struct {
	slots []slot[K]
	taken int // slots with a hash
	keys  int // slots with a key
	next  int // the slot at which evictIdle continues

	// lastEvicted is the latest position at which an evicted bucket was full. A new key begins with
	// that position, because it may be an evicted key that is used at an earlier time.
	lastEvicted int64
}

// slot is a bucket. It is empty if hash is 0. If full is alwaysFull, the slot has lost its key.
// Searches then continue behind the slot, because other keys may lie there.
type slot[K comparable] struct {
	hash uint64
	full int64 // the position at which the bucket is full
	key  K
}

func (s *slot[K]) hasKey() bool { return s.hash != 0 && s.full != alwaysFull }

// find returns the slot of the key. If there is none, it returns the slot for a new key: the first
// slot of the search whose bucket was full before the position idle, or the empty slot at the end
// of the search.
func (t *table[K]) find(hash uint64, key K, idle int64) (s *slot[K], found bool) {
	if len(t.slots) == 0 {
		t.slots = make([]slot[K], minSlots)
	}
	var free *slot[K]
	// A search begins at an even slot: two slots with string keys are one cache line.
	at, _ := bits.Mul64(hash, uint64(len(t.slots)))
	for i := int(at) &^ 1; ; i++ {
		if i == len(t.slots) {
			i = 0
		}
		s = &t.slots[i]
		switch {
		case s.hash == hash && s.key == key && s.full != alwaysFull:
			return s, true
		case s.hash == 0:
			if free != nil {
				return free, false
			}
			return s, false
		case free == nil && s.full < idle:
			free = s
		}
	}
}

const minSlots = 8

// isCrowded reports whether the table needs a rebuild before a key takes an empty slot, to keep
// searches short.
func (t *table[K]) isCrowded() bool { return t.taken >= len(t.slots)*3/4 }

// put stores a new bucket in a slot that find returned. It reports whether it evicted a key.
func (t *table[K]) put(s *slot[K], bucket slot[K]) (evicted bool) {
	if s.hash == 0 {
		t.taken++
	}
	if evicted = s.hasKey(); evicted {
		t.lastEvicted = max(t.lastEvicted, s.full)
	} else {
		t.keys++
	}
	*s = bucket
	return evicted
}

// rebuild moves the keys that are not idle to a new array with room for more, and returns the
// number of evicted keys.
func (t *table[K]) rebuild(idle int64) (evicted int) {
	keys := 0
	for i := range t.slots {
		switch s := &t.slots[i]; {
		case s.hash == 0:
		case s.full >= idle:
			keys++
		default:
			t.lastEvicted = max(t.lastEvicted, s.full)
		}
	}
	old := *t
	*t = table[K]{slots: make([]slot[K], keys*5/3+minSlots), lastEvicted: t.lastEvicted}
	for i := range old.slots {
		if from := &old.slots[i]; from.hash != 0 && from.full >= idle {
			to, _ := t.find(from.hash, from.key, alwaysFull)
			t.put(to, *from)
		}
	}
	return old.keys - keys
}

// remove removes a key, idle or not, and reports whether it was there.
func (t *table[K]) remove(hash uint64, key K) bool {
	s, found := t.find(hash, key, alwaysFull)
	if found {
		s.clearKey()
		t.keys--
	}
	return found
}

// evictIdle checks the next slots, beginning again at the first after the last, and evicts idle
// keys. It returns their number.
func (t *table[K]) evictIdle(slots int, idle int64) (evicted int) {
	for range min(slots, len(t.slots)) {
		if t.next++; t.next >= len(t.slots) {
			t.next = 0
		}
		if s := &t.slots[t.next]; s.hasKey() && s.full < idle {
			t.lastEvicted = max(t.lastEvicted, s.full)
			s.clearKey()
			evicted++
		}
	}
	t.keys -= evicted
	return evicted
}

func (s *slot[K]) clearKey() {
	var none K
	s.key, s.full = none, alwaysFull
}
