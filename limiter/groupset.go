package limiter

import (
	"errors"
	"slices"
	"time"

	"github.com/weir-go/weir/internal/keyed"
)

// Reconfigure changes Rate, Burst, Tiers, Shadow and ShowKeys. Keys keep their tokens and holds, as
// with [TokenBucket.SetRate] and [TokenBucket.SetBurst], and the statistics are kept. TierOf is not
// changed. If c is invalid or differs in another field, or in the number of Tiers, Reconfigure
// returns an error and changes nothing.
func (g *Group[K]) Reconfigure(c GroupConfig[K]) error {
	return g.reconfigureAt(time.Since(g.epoch), c)
}

func (g *Group[K]) reconfigureAt(at time.Duration, c GroupConfig[K]) error {
	if err := c.Validate(); err != nil {
		return err
	}
	c = c.withDefaults()
	if len(c.Tiers) != len(g.tiers)-1 || int64(c.MaxKeys) != g.maxKeys || c.ShareNew != g.shareNew ||
		c.MaxWaiters != g.maxWaiters || c.Name != g.Name() {
		return errors.New("limiter: Reconfigure can change Rate, Burst, Tiers, Shadow and ShowKeys; other fields and the number of Tiers must be as before")
	}
	if g.statistics != nil {
		g.shadow.Store(c.Shadow)
	}
	g.busiest.Show(c.ShowKeys)
	return g.set.Change(func() error {
		for i, t := range c.allTiers() {
			g.setTier(at, i, t)
		}
		return nil
	})
}

// setTier changes the limits of a tier; tier 0 is the group itself. The limits are valid.
func (g *Group[K]) setTier(at time.Duration, tier int, t Tier) {
	g.mu.Lock()
	defer g.mu.Unlock()
	l := newLimits(t.Rate, t.Burst)
	for j := range g.shards {
		s := &g.shards[j]
		s.mu.Lock()
		s.setLimits(tier, &l, at)
		s.mu.Unlock()
	}
	g.tiers[tier].Store(&l)
	if tier == 0 {
		g.first.Store(&t)
	}
	if g.shared != nil {
		g.shared[tier].replaceState(at, func(*bucketState) *bucketState { return newBucketState(t.Rate, t.Burst) })
	}
	g.queues.wakeAll()
}

// setLimits changes the limits of a tier at the time at, and converts the buckets and holds of its
// keys.
func (s *shard[K]) setLimits(tier int, l *limits, at time.Duration) {
	t := &s.tiers[tier]
	for b := range t.buckets.All() {
		b.Until = l.convertIdle(t.limits, b.Until, at)
	}
	t.buckets.LastEvicted = l.convertIdle(t.limits, t.buckets.LastEvicted, at)
	for own := range s.holds.All() {
		if h := &own.Value; h.tier == tier {
			if h.full != alwaysFull {
				h.full = l.convertIdle(t.limits, h.full, at)
			}
			h.hold = l.convertHold(t.limits, h.hold, at)
		}
	}
	if s.all != nil {
		s.all[tier] = l.convertHold(t.limits, s.all[tier], at)
	}
	t.limits = l
}

// convertIdle is like convert, but a full bucket stays idle, even if it has only just become full.
func (l *limits) convertIdle(old *limits, full int64, at time.Duration) int64 {
	now := l.convert(old, full, at)
	if full < old.idle(at) && now <= l.units(l.clamp(at)) {
		now = min(now, l.idle(at)-1)
	}
	return max(now, alwaysFull)
}

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
	t.buckets.LastEvicted = max(t.buckets.LastEvicted, h.floor)
	for b := range t.buckets.All() {
		b.Until = max(b.Until, h.floor)
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
			s.tiers[j].noRefundBefore = firstPosition
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
		g.holdCount.Add(-int64(s.holds.Len()))
		s.holds, s.all, s.held = keyed.Map[K, keyHold]{}, nil, false
		for j := range s.tiers {
			t := &s.tiers[j]
			g.keyCount.Add(-int64(t.buckets.Len()))
			t.buckets = noBuckets[K]()
			t.noRefundBefore = max(t.noRefundBefore, clampTime(time.Since(g.epoch))+1)
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
	old := b.state.Load()
	promised, number := old.lastPromise, old.set
	next := b.fillLocked(at)
	next.lastPromise, next.set = promised, number
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
