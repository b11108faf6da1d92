package limiter

import (
	"sync/atomic"
	"time"
)

// keyHold is the hold of a key, by the limits of a tier.
type keyHold struct {
	hold
	tier int
}

func (g *Group[K]) hold(at time.Duration, key K, d time.Duration) {
	var p place[K]
	g.place(&p, key)
	s := p.shard
	s.mu.Lock()
	defer s.mu.Unlock()
	until := after(at, d)
	old, known := s.holds[key]
	if d <= 0 || key != key || known && until <= old.until || !known && !g.claimHold(s, at) { //nolint:gocritic // a NaN is not itself
		return
	}
	if s.holds == nil {
		s.holds = map[K]keyHold{}
	}
	s.holds[key] = keyHold{p.class().by.holdUntil(until), p.tier}
}

// claimHold reports whether another key may be held.
func (g *Group[K]) claimHold(s *shard[K], at time.Duration) bool {
	if g.held.Load() >= g.maxKeys {
		g.endHolds(s, at, glance)
	}
	return claim(&g.held, g.maxKeys)
}

// heldAt is the hold of a key. Each look at one also looks for an old one to forget, so that they do not gather.
func (g *Group[K]) heldAt(p *place[K], at time.Duration) hold {
	s := p.shard
	g.endHolds(s, at, 1)
	h, known := s.holds[p.key]
	if !known {
		return unheld
	}
	if h.tier != p.tier {
		h = keyHold{p.class().by.holdUntil(h.until), p.tier}
		s.holds[p.key] = h
	}
	return h.hold
}

// endHolds looks at some holds, and forgets those that no longer matter because the bucket would be full again.
func (g *Group[K]) endHolds(s *shard[K], at time.Duration, most int) {
	for key, h := range s.holds {
		if c := &s.classes[h.tier]; h.left(at) == 0 && (c.by.usual == 0 || h.floor < c.by.idle(at)) {
			// At an earlier time the key is asked for as one that was full then, and not before.
			c.table.dropped = max(c.table.dropped, h.floor)
			if b, known := c.table.seek(g.hash(key)|1, key, always); known {
				b.full = max(b.full, h.floor)
			}
			delete(s.holds, key)
			g.held.Add(-1)
		}
		if most--; most == 0 {
			return
		}
	}
}

// claim adds one to a number that is less than most.
func claim(number *atomic.Int64, most int64) bool {
	for n := number.Load(); n < most; n = number.Load() {
		if number.CompareAndSwap(n, n+1) {
			return true
		}
	}
	return false
}
