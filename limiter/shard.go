package limiter

import (
	"sync"
	"time"
)

// shard is a part of the keys of a Group.
type shard[K comparable] struct {
	mu        sync.Mutex
	classes   []class[K] // one a tier
	max       int
	overflow  Overflow
	evictions int64
	_         [64]byte // the locks of two shards lie on different lines
}

// class is the keys of one tier.
type class[K comparable] struct {
	table  table[K]
	by     *tierLimits // what the positions mean
	shared int64       // the bucket of all keys for which there was no room
}

// tierLimits are the limits of a tier, and since when.
type tierLimits struct {
	limits
	since time.Duration
}

// idle is the position before which a full bucket is as good as a new one.
func (l *tierLimits) idle(at time.Duration) int64 { return l.units(l.clamp(at)) - l.slack }

// class returns the class of a tier, after a change of its limits with all its keys carried over.
func (s *shard[K]) class(g *Group[K], tier int) *class[K] {
	c := &s.classes[tier]
	if by := g.tiers[tier].Load(); by != c.by {
		for i := range c.table.slots {
			if slot := &c.table.slots[i]; slot.hash != 0 && slot.full != always {
				slot.full = max(by.carry(&c.by.limits, slot.full, by.since), always+1)
			}
		}
		c.shared = by.carry(&c.by.limits, c.shared, by.since)
		c.table.dropped = max(by.carry(&c.by.limits, c.table.dropped, by.since), always+1)
		c.by = by
	}
	return c
}

// take answers a request of a key.
func (s *shard[K]) take(r *Result, c *class[K], hash uint64, key K, at time.Duration, n int) {
	b, found := c.table.seek(hash, key, c.by.idle(at))
	if !found {
		if uint(n)-1 >= c.by.usual { // a peek, or nonsense, or no limit
			c.by.look(r, at, c.table.dropped, 0, n)
			return
		}
		if b = s.admit(c, b, hash, key, at); b == nil {
			c.takeNew(r, s.overflow, at, n)
			return
		}
	}
	b.full = c.by.decide(r, at, b.full, n)
}

// admit gives a new key, with a full bucket, the slot that seek has found for it or, where that must not be
// used, another. It returns nil where there is no room.
func (s *shard[K]) admit(c *class[K], b *slot[K], hash uint64, key K, at time.Duration) *slot[K] {
	if reuse := b.hash != 0 && b.full != always; !reuse && !s.room(at) {
		return nil
	}
	if b.hash == 0 && c.table.crowded() {
		idle := c.by.idle(at)
		s.evictions += int64(c.table.rebuild(idle))
		b, _ = c.table.seek(hash, key, idle)
	}
	if c.table.put(b, slot[K]{hash: hash, key: key, full: c.table.dropped}) {
		s.evictions++
	}
	return b
}

// hold admits nothing for a key for d, if there is room to remember it.
func (s *shard[K]) hold(c *class[K], hash uint64, key K, at, d time.Duration) {
	b, found := c.table.seek(hash, key, c.by.idle(at))
	if !found {
		if b = s.admit(c, b, hash, key, at); b == nil {
			return
		}
	}
	b.full = max(b.full, c.by.held(at, d))
}

// glance is how many slots are looked at for idle keys when there is no room for a new one.
const glance = 16

// room reports whether there is room for another key, which it makes if it can.
func (s *shard[K]) room(at time.Duration) bool {
	if s.keys() < s.max {
		return true
	}
	for i := range s.classes {
		c := &s.classes[i]
		s.evictions += int64(c.table.forget(glance, c.by.idle(at)))
	}
	return s.keys() < s.max
}

func (s *shard[K]) keys() (n int) {
	for i := range s.classes {
		n += s.classes[i].table.keys
	}
	return n
}

// takeNew answers for a key for which there is no room.
func (c *class[K]) takeNew(r *Result, o Overflow, at time.Duration, n int) {
	switch o {
	case ShareNew:
		c.shared = c.by.decide(r, at, c.shared, n)
	case PassNew:
		c.by.look(r, at, always, 0, n)
	case RefuseNew:
		at = c.by.clamp(at)
		*r = Result{Limit: c.by.burst, RetryAfter: c.by.until(c.by.units(at)+c.by.cost, at)}
	}
}
