package limiter

import (
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/internal/keyed"
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
	old, full := p.ownHold(), int64(alwaysFull)
	switch {
	case d <= 0 || old != nil && until <= old.until:
		return
	case key != key || old == nil && !g.claimHold(s, at): //nolint:gocritic // a NaN would never be found again
		g.noRoom.Add(1)
		return
	case old == nil:
		slot, _ := s.holds.Place(p.hash, key, 0)
		slot, _ = s.holds.Add(slot, p.hash, g.storedCopy(key), 0)
		old = &slot.Value
	case old.tier == p.tier:
		full = old.full
	}
	*old = keyHold{p.tierTable().limits.holdUntil(until), p.tier, full}
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
// looks at one slot of the holds, and drops a hold that has expired, so that expired holds do not
// accumulate.
func (g *Group[K]) holdOf(p *keyPosition[K], at time.Duration) hold {
	s := p.shard
	g.dropHolds(s, at, 1, false)
	if own := s.holds.Find(p.hash, p.key); own != nil && own.Value.tier == p.tier && own.Value.remaining(at) == 0 {
		g.dropHold(p, own, at, false)
	}
	h := p.holdInTier()
	if s.all != nil {
		s.dropExpiredHold(p.tier, at)
	}
	if s.all != nil {
		h = h.combinedWith(s.all[p.tier])
	}
	s.held = s.holds.Len() > 0 || s.all != nil
	return h
}

// holdInTier returns the hold of the key alone, in the units of its tier.
func (p *keyPosition[K]) holdInTier() hold {
	own := p.ownHold()
	if own == nil {
		return noHold
	}
	if own.tier != p.tier {
		*own = keyHold{p.tierTable().limits.holdUntil(own.until), p.tier, alwaysFull}
	}
	return own.hold
}

// dropHolds looks at up to limit slots of holds, and drops those that are over and whose buckets
// are full again. If move is set, it also moves the buckets of other holds that are over to the
// table, as far as there is room.
func (g *Group[K]) dropHolds(s *shard[K], at time.Duration, limit int, move bool) {
	for own := range s.holds.Next(limit) {
		if own.Value.remaining(at) == 0 {
			g.dropHold(&keyPosition[K]{shard: s, tier: own.Value.tier, hash: g.hash(own.Key), key: own.Key}, own, at, move)
		}
	}
}

// dropHold does the work of dropHolds for one hold, that of the key at p, which is over.
func (g *Group[K]) dropHold(p *keyPosition[K], own *keyed.Slot[K, keyHold], at time.Duration, move bool) {
	t, h := p.tierTable(), &own.Value
	idle, full := t.limits.idle(at), max(h.floor, h.full)
	isIdle := t.limits.counted == 0 || full < idle
	if !isIdle && !move {
		return
	}
	s, known := t.buckets.Place(p.hash, p.key, idle)
	if !known && !isIdle {
		if s = g.addKey(p, s, at, false); s == nil {
			return
		}
		known = true
	}
	if known {
		s.Until = max(s.Until, full)
	}
	// The bucket is not full before that position. This must also hold for a request that states an
	// earlier time.
	if isIdle {
		t.buckets.LastEvicted = max(t.buckets.LastEvicted, full)
	}
	t.noRefundBefore = max(t.noRefundBefore, h.until)
	p.shard.holds.Remove(own)
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
