package limiter

import "time"

// take takes n tokens of the key, unless callers wait for them. It does not count the request in
// the statistics.
func (g *Group[K]) take(r *Result, at time.Duration, key K, n int) {
	if q := g.queues.of(key); q != nil && q.waitingTokens.Load() != 0 {
		g.peek(r, at, key, 0, n)
		return
	}
	g.acquire(r, at, key, n)
}

// peek fills r with the result that take would give if ahead more tokens were taken first. It takes
// nothing.
func (g *Group[K]) peek(r *Result, at time.Duration, key K, ahead int64, n int) {
	waiting := int64(0)
	if q := g.queues.of(key); q != nil {
		waiting = q.waitingTokens.Load()
	}
	g.predict(r, at, key, waiting+ahead, n)
	if waiting != 0 {
		refuseBehindWaiters(r, n)
	}
}

// acquire takes n tokens without regard to the queue. It reports whether there is room for the key.
func (g *Group[K]) acquire(r *Result, at time.Duration, key K, n int) (room bool) {
	var p keyPosition[K]
	g.locate(&p, key)
	p.shard.mu.Lock()
	room = g.acquireLocked(&p, r, at, n)
	p.shard.mu.Unlock()
	if !room {
		g.acquireWithoutRoom(r, at, p.tier, n)
	}
	return room
}

// predict fills in the answer that acquire would give if ahead other tokens were taken first.
func (g *Group[K]) predict(r *Result, at time.Duration, key K, ahead int64, n int) {
	var p keyPosition[K]
	g.locate(&p, key)
	p.shard.mu.Lock()
	room := g.predictLocked(&p, r, at, ahead, n)
	p.shard.mu.Unlock()
	if !room {
		g.predictWithoutRoom(r, at, p.tier, ahead, n)
	}
}

// acquireWithoutRoom decides about a request for a key that has no room in the group.
func (g *Group[K]) acquireWithoutRoom(r *Result, at time.Duration, tier, n int) {
	if g.overflow == ShareNew {
		*r = g.shared[tier].takeAt(at, n)
		return
	}
	g.predictWithoutRoom(r, at, tier, 0, n)
}

func (g *Group[K]) predictWithoutRoom(r *Result, at time.Duration, tier int, ahead int64, n int) {
	switch l := g.tiers[tier].Load(); g.overflow {
	case ShareNew:
		*r = g.shared[tier].peekAt(at, ahead, n)
	case PassNew:
		l.peek(r, at, alwaysFull, noHold, 0, n)
	default:
		at = l.clamp(at)
		*r = Result{Limit: l.burst, RetryAfter: l.until(l.units(at)+l.cost, at)}
	}
}

// hasRoom reports whether there is room for the key, and returns its tier.
func (g *Group[K]) hasRoom(key K, n int) (tier int, room bool) {
	var p keyPosition[K]
	g.locate(&p, key)
	p.shard.mu.Lock()
	defer p.shard.mu.Unlock()
	var r Result
	return p.tier, g.predictLocked(&p, &r, time.Since(g.epoch), 0, n)
}

func (g *Group[K]) putBack(key K, n int) {
	if n < 1 {
		return
	}
	if tier, known := g.refund(key, n); !known {
		if g.overflow == ShareNew && g.keyCount.Load() >= g.maxKeys {
			g.shared[tier].Refund(n)
		}
		return
	}
	if q := g.queues.of(key); q != nil {
		q.wakeFirst()
	}
}

func (g *Group[K]) refund(key K, n int) (tier int, known bool) {
	var p keyPosition[K]
	g.locate(&p, key)
	p.shard.mu.Lock()
	defer p.shard.mu.Unlock()
	t := p.tierTable()
	s, known := t.table.find(p.hash, key, alwaysFull)
	if known {
		s.full = max(t.limits.refund(s.full, n), alwaysFull+1)
	}
	return p.tier, known
}
