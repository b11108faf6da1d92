package limiter

import (
	"errors"
	"time"
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
	if len(c.Tiers) != len(g.tiers)-1 || int64(c.MaxKeys) != g.maxKeys || c.Overflow != g.overflow ||
		c.MaxWaiters != g.maxWaiters || c.Name != g.Name() {
		return errors.New("limiter: Reconfigure can change Rate, Burst, Tiers, Shadow and ShowKeys; other fields and the number of Tiers must be as before")
	}
	if g.statistics != nil {
		g.shadow.Store(c.Shadow)
	}
	g.busiest.Show(c.ShowKeys)
	for i, t := range c.allTiers() {
		g.setTier(at, i, t)
	}
	return nil
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
	for i := range t.table.slots {
		if slot := &t.table.slots[i]; slot.hasKey() {
			slot.full = l.convertIdle(t.limits, slot.full, at)
		}
	}
	t.table.lastEvicted = l.convertIdle(t.limits, t.table.lastEvicted, at)
	for key, h := range s.holds {
		if h.tier == tier {
			if h.full != alwaysFull {
				h.full = l.convertIdle(t.limits, h.full, at)
			}
			h.hold = l.convertHold(t.limits, h.hold, at)
			s.holds[key] = h
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
	return max(now, alwaysFull+1)
}
