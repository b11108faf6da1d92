package limiter

import (
	"sync/atomic"
	"time"
)

// keyHold is the hold of a key, in the units of the limits of a tier. It is kept until the bucket
// of the key is full again after the hold. A key that has no room in the table then uses it as its
// bucket, because a key that was held is in use.
type keyHold struct {
	hold
	tier int
	full int64 // the position at which that bucket is full
}

func (g *Group[K]) holdAt(at time.Duration, key K, d time.Duration) {
	var p keyPosition[K]
	g.locate(&p, key)
	s := p.shard
	s.mu.Lock()
	defer s.mu.Unlock()
	until := addTime(at, d)
	old, known := s.holds[key]
	switch {
	case d <= 0 || known && until <= old.until:
		return
	case key != key || !known && !g.claimHold(s, at): //nolint:gocritic // a NaN would never be found again
		g.noRoom.Add(1)
		return
	case !known || old.tier != p.tier:
		old.full = alwaysFull
	}
	if s.holds == nil {
		s.holds = map[K]keyHold{}
	}
	s.holds[key] = keyHold{p.tierTable().limits.holdUntil(until), p.tier, old.full}
	s.held = true
}

// claimHold reports whether another key may be held. If there are MaxKeys holds, it looks for some
// that are over.
func (g *Group[K]) claimHold(s *shard[K], at time.Duration) bool {
	if g.holdCount.Load() >= g.maxKeys {
		g.dropHolds(s, at, scanLength, true)
		if other := &g.shards[g.nextShard.Add(1)%uint64(len(g.shards))]; other != s && other.mu.TryLock() {
			g.dropHolds(other, at, scanLength, true)
			other.mu.Unlock()
		}
	}
	return incrementBelow(&g.holdCount, g.maxKeys)
}

// holdOf returns the hold of a key: its own hold combined with the hold of all keys. Each call also
// checks one hold and drops it if it has expired, so that expired holds do not accumulate.
func (g *Group[K]) holdOf(p *keyPosition[K], at time.Duration) hold {
	s := p.shard
	g.dropHolds(s, at, 1, false)
	if h, known := s.holds[p.key]; known && h.tier == p.tier && h.remaining(at) == 0 {
		g.dropHold(p, h, at, false)
	}
	h := g.ownHold(p)
	if s.all != nil {
		s.dropExpiredHold(p.tier, at)
	}
	if s.all != nil {
		h = h.combinedWith(s.all[p.tier])
	}
	s.held = len(s.holds) > 0 || s.all != nil
	return h
}

// ownHold returns the hold of the key alone.
func (g *Group[K]) ownHold(p *keyPosition[K]) hold {
	s := p.shard
	h, known := s.holds[p.key]
	if !known {
		return noHold
	}
	if h.tier != p.tier {
		h = keyHold{p.tierTable().limits.holdUntil(h.until), p.tier, alwaysFull}
		s.holds[p.key] = h
	}
	return h.hold
}

// dropHolds looks at up to limit holds, and drops those that are over and whose buckets are full
// again. If move is set, it also moves the buckets of other holds that are over to the table, as
// far as there is room.
func (g *Group[K]) dropHolds(s *shard[K], at time.Duration, limit int, move bool) {
	for key, h := range s.holds {
		if h.remaining(at) == 0 {
			g.dropHold(&keyPosition[K]{shard: s, tier: h.tier, hash: g.hash(key) | 1, key: key}, h, at, move)
		}
		if limit--; limit == 0 {
			return
		}
	}
}

// dropHold does the work of dropHolds for the hold h of a key, which is over.
func (g *Group[K]) dropHold(p *keyPosition[K], h keyHold, at time.Duration, move bool) {
	t := p.tierTable()
	idle, full := t.limits.idle(at), max(h.floor, h.full)
	isIdle := t.limits.counted == 0 || full < idle
	if !isIdle && !move {
		return
	}
	s, known := t.table.find(p.hash, p.key, idle)
	if !known && !isIdle {
		if s = g.addKey(p, s, at); s == nil {
			return
		}
		known = true
	}
	if known {
		s.full = max(s.full, full)
	}
	// The bucket is not full before that position. This must also hold for a request that states an
	// earlier time.
	if isIdle {
		t.table.lastEvicted = max(t.table.lastEvicted, full)
	}
	t.noRefundBefore = max(t.noRefundBefore, h.until)
	delete(p.shard.holds, p.key)
	g.holdCount.Add(-1)
}

// incrementBelow adds 1 to n if n is below limit. It reports whether n was below.
func incrementBelow(n *atomic.Int64, limit int64) bool {
	for old := n.Load(); old < limit; old = n.Load() {
		if n.CompareAndSwap(old, old+1) {
			return true
		}
	}
	return false
}
