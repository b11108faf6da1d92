package limiter

import "math"

// recordUnpaid remembers, in shadow mode, whether a request of the key took its n tokens. A refund
// must not give back tokens that were allowed without being taken.
func (g *Group[K]) recordUnpaid(key K, n int, taken bool) {
	if n < 1 || key != key { //nolint:gocritic // a NaN would never be found again
		return
	}
	s := g.shardOf(g.hash(key))
	s.mu.Lock()
	defer s.mu.Unlock()
	if taken {
		delete(s.unpaid, key)
		return
	}
	unpaid, known := s.unpaid[key]
	if !known {
		if s.unpaid == nil {
			s.unpaid = map[K]int64{}
		}
		if int64(len(s.unpaid)) > g.maxKeys/int64(len(g.shards)) {
			s.forgetAnyUnpaid()
		}
		key = g.storedCopy(key)
	}
	s.unpaid[key] = min(unpaid, math.MaxInt64-maxBurst) + min(int64(n), maxBurst) // no overflow
}

// forgetAnyUnpaid makes room in unpaid. A refund for the forgotten key may give back too much.
func (s *shard[K]) forgetAnyUnpaid() {
	for key := range s.unpaid {
		delete(s.unpaid, key)
		return
	}
}

// refundableOf returns how many of n tokens of the key to give back: see statistics.refundable.
func (g *Group[K]) refundableOf(key K, n int) int {
	if !g.isShadow() || n < 1 {
		return n
	}
	s := g.shardOf(g.hash(key))
	s.mu.Lock()
	defer s.mu.Unlock()
	unpaid := s.unpaid[key]
	skip := min(unpaid, int64(n))
	if skip == unpaid {
		delete(s.unpaid, key)
	} else {
		s.unpaid[key] = unpaid - skip
	}
	return n - int(skip)
}
