package limiter

import (
	"sync/atomic"
	"time"
)

// keyHold is the hold of a key, in the units of the limits of a tier.
type keyHold struct {
	hold
	tier int
}

func (g *Group[K]) holdAt(at time.Duration, key K, d time.Duration) {
	var p keyPosition[K]
	g.locate(&p, key)
	s := p.shard
	s.mu.Lock()
	defer s.mu.Unlock()
	until := addTime(at, d)
	old, known := s.holds[key]
	if d <= 0 || key != key || known && until <= old.until || !known && !g.claimHold(s, at) { //nolint:gocritic // a NaN would never be found again
		return
	}
	if s.holds == nil {
		s.holds = map[K]keyHold{}
	}
	s.holds[key] = keyHold{p.tierTable().limits.holdUntil(until), p.tier}
	s.held = true
}

// claimHold reports whether another key may be held.
func (g *Group[K]) claimHold(s *shard[K], at time.Duration) bool {
	if g.holdCount.Load() >= g.maxKeys {
		g.dropExpiredHolds(s, at, scanLength)
	}
	return incrementBelow(&g.holdCount, g.maxKeys)
}

// holdOf returns the hold of a key: its own hold combined with the hold of all keys. Each call also
// checks one hold and drops it if it has expired, so that expired holds do not accumulate.
func (g *Group[K]) holdOf(p *keyPosition[K], at time.Duration) hold {
	s := p.shard
	g.dropExpiredHolds(s, at, 1)
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
		h = keyHold{p.tierTable().limits.holdUntil(h.until), p.tier}
		s.holds[p.key] = h
	}
	return h.hold
}

// dropExpiredHolds looks at up to limit holds. It drops the holds that ended so long ago that the
// bucket would be full again.
func (g *Group[K]) dropExpiredHolds(s *shard[K], at time.Duration, limit int) {
	for key, h := range s.holds {
		if t := &s.tiers[h.tier]; h.remaining(at) == 0 && (t.limits.counted == 0 || h.floor < t.limits.idle(at)) {
			// After the hold, the bucket is not full before h.floor. This must also hold for a
			// request that states an earlier time.
			t.table.lastEvicted = max(t.table.lastEvicted, h.floor)
			if b, known := t.table.find(g.hash(key)|1, key, alwaysFull); known {
				b.full = max(b.full, h.floor)
			}
			delete(s.holds, key)
			g.holdCount.Add(-1)
		}
		if limit--; limit == 0 {
			return
		}
	}
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
