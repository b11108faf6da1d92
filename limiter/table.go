package limiter

import "math/bits"

// table is a hash table of buckets: open addressing, so that finding one touches a single line
// of memory, and hashes kept beside the keys, so that other keys are not touched at all.
//
// A bucket that has become full again need not be removed: its slot is taken by the next new key that comes
// by, and it is left behind when the table is built anew.
type table[K comparable] struct {
	slots []slot[K]
	taken int // slots that are not vacant
	keys  int // of these, with a key
	hand  int // where the search for idle keys goes on

	// dropped is the latest position at which a bucket was full that has been dropped. A new
	// key is one that was full then, for it may be the same key, asked for at an earlier time.
	dropped int64
}

// slot is a bucket: vacant where hash is 0, and without a key (though others may lie behind it) where full is always.
type slot[K comparable] struct {
	hash uint64
	full int64 // the position at which the bucket is full
	key  K
}

// used reports whether the slot is a key's.
func (s *slot[K]) used() bool { return s.hash != 0 && s.full != always }

// seek finds the slot of the key, or the one that it would get: the first in its way of which
// the key is idle, its bucket being full before a position, or else the vacant one at the end.
func (t *table[K]) seek(hash uint64, key K, idle int64) (s *slot[K], found bool) {
	if len(t.slots) == 0 {
		t.slots = make([]slot[K], leastSlots)
	}
	var free *slot[K]
	at, _ := bits.Mul64(hash, uint64(len(t.slots)))
	for i := int(at); ; i++ {
		if i == len(t.slots) {
			i = 0
		}
		s = &t.slots[i]
		switch {
		case s.hash == hash && s.key == key && s.full != always:
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

const leastSlots = 8

// crowded reports whether another slot must not be taken, for searches would become long.
func (t *table[K]) crowded() bool { return t.taken >= len(t.slots)*4/5 }

// put gives a slot that seek has found to a key. It reports whether an idle key had to go.
func (t *table[K]) put(s *slot[K], with slot[K]) (evicted bool) {
	if s.hash == 0 {
		t.taken++
	}
	if evicted = s.used(); evicted {
		t.dropped = max(t.dropped, s.full)
	} else {
		t.keys++
	}
	*s = with
	return evicted
}

// rebuild moves those keys that are not idle to a new table with room for more, and returns
// how many were left behind.
func (t *table[K]) rebuild(idle int64) (dropped int) {
	keys := 0
	for i := range t.slots {
		switch s := &t.slots[i]; {
		case s.hash == 0:
		case s.full >= idle:
			keys++
		default:
			t.dropped = max(t.dropped, s.full)
		}
	}
	old := *t
	*t = table[K]{slots: make([]slot[K], keys*8/5+leastSlots), dropped: t.dropped}
	for i := range old.slots {
		if from := &old.slots[i]; from.hash != 0 && from.full >= idle {
			to, _ := t.seek(from.hash, from.key, always)
			t.put(to, *from)
		}
	}
	return old.keys - keys
}

// remove drops a key, whether or not it is idle. It reports whether it was there.
func (t *table[K]) remove(hash uint64, key K) bool {
	s, found := t.seek(hash, key, always)
	if found {
		var none K
		s.key, s.full = none, always
		t.keys--
	}
	return found
}

// forget drops the keys of some slots if they are idle, going round the table, and returns how many it dropped.
func (t *table[K]) forget(slots int, idle int64) (dropped int) {
	for range min(slots, len(t.slots)) {
		if t.hand++; t.hand >= len(t.slots) {
			t.hand = 0
		}
		if s := &t.slots[t.hand]; s.hash != 0 && s.full < idle && s.full != always {
			var none K
			t.dropped = max(t.dropped, s.full)
			s.key, s.full = none, always
			dropped++
		}
	}
	t.keys -= dropped
	return dropped
}
