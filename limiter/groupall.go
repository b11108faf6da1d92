package limiter

import (
	"slices"
	"time"
)

// holdAll refuses all requests of all keys for d, as [Keyed.Hold] does for one key. It does not
// shorten the hold of a key.
func (g *Group[K]) holdAll(d time.Duration) {
	if d <= 0 {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	until := addTime(time.Since(g.epoch), d)
	for i := range g.shards {
		s := &g.shards[i]
		s.mu.Lock()
		s.holdAll(until)
		s.mu.Unlock()
	}
	for _, b := range g.shared {
		b.Hold(d)
	}
}

// holdAll holds all keys, unless they are held for longer.
func (s *shard[K]) holdAll(until time.Duration) {
	if s.all == nil {
		s.all = make([]hold, len(s.tiers))
		for i := range s.all {
			s.all[i] = noHold
		}
	}
	for i := range s.all {
		if until > s.all[i].until {
			s.all[i] = s.tiers[i].limits.holdUntil(until)
		}
	}
	s.held = true
}

// dropExpiredHold drops the hold of all keys of a tier if it ended so long ago that every bucket
// would be full again.
func (s *shard[K]) dropExpiredHold(tier int, at time.Duration) {
	t, h := &s.tiers[tier], s.all[tier]
	if h == noHold || h.remaining(at) > 0 || t.limits.counted != 0 && h.floor >= t.limits.idle(at) {
		return
	}
	// After the hold, no bucket is full before h.floor. This must also hold for a request that
	// states an earlier time.
	t.table.lastEvicted = max(t.table.lastEvicted, h.floor)
	for i := range t.table.slots {
		if slot := &t.table.slots[i]; slot.hasKey() {
			slot.full = max(slot.full, h.floor)
		}
	}
	s.all[tier] = noHold
	if !slices.ContainsFunc(s.all, func(h hold) bool { return h != noHold }) {
		s.all = nil
	}
}

// combinedWith returns the hold that refuses every request that h or other refuses.
func (h hold) combinedWith(other hold) hold {
	return hold{until: max(h.until, other.until), floor: max(h.floor, other.floor)}
}

// restart forgets all keys and holds, because the clock is a new one: see clock.IsNew.
func (g *Group[K]) restart(at time.Duration) {
	g.forgetAll()
	for i := range g.shards {
		s := &g.shards[i]
		s.mu.Lock()
		s.latest = at
		for j := range s.tiers {
			s.tiers[j].heldUntil = firstPosition
		}
		s.mu.Unlock()
	}
}

// forgetAll is Forget for all keys, and ends the hold of all keys.
func (g *Group[K]) forgetAll() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i := range g.shards {
		s := &g.shards[i]
		s.mu.Lock()
		g.holdCount.Add(-int64(len(s.holds)))
		s.holds, s.all, s.held = nil, nil, false
		for j := range s.tiers {
			t := &s.tiers[j]
			g.keyCount.Add(-int64(t.table.keys))
			t.table = table[K]{lastEvicted: alwaysFull + 1}
		}
		s.mu.Unlock()
	}
	for _, b := range g.shared {
		b.fill(time.Since(g.epoch))
	}
	g.queues.wakeAll()
}

// fill makes the bucket full and ends its hold.
func (b *TokenBucket) fill(at time.Duration) {
	b.mu.Lock()
	promised := b.state.Load().lastPromise
	b.fillLocked(at).lastPromise = promised
	b.mu.Unlock()
	b.queue.wakeFirst()
}

// fillLocked replaces the state by that of a full bucket, without promises.
func (b *TokenBucket) fillLocked(at time.Duration) *bucketState {
	old := b.state.Load()
	next := newBucketState(old.rate, old.configuredBurst)
	old.next, old.replacedAt = next, at
	old.full.Store(replaced)
	b.state.Store(next)
	return next
}
