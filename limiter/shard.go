package limiter

import (
	"sync"
	"time"
)

// shard is a part of the keys of a Group.
type shard[K comparable] struct {
	mu      sync.Mutex
	classes []class[K] // one a tier
	keys    int        // in all of them
	max     int
}

// class is the keys of one tier, each with the position at which its bucket is full.
type class[K comparable] struct {
	by     *tierLimits // what the positions mean
	full   map[K]int64
	shared int64 // the bucket of all keys for which there was no room
}

// tierLimits are the limits of a tier, and since when.
type tierLimits struct {
	limits
	since time.Duration
}

// class returns the class of a tier, after a change of its limits with all its keys carried over.
func (s *shard[K]) class(g *Group[K], tier int) *class[K] {
	c := &s.classes[tier]
	if by := g.tiers[tier].Load(); by != c.by {
		for key, full := range c.full {
			c.full[key] = by.carry(&c.by.limits, full, by.since)
		}
		c.shared = by.carry(&c.by.limits, c.shared, by.since)
		c.by = by
	}
	return c
}

// A new key looks at some others, taken at random, and makes those forgotten that are idle: at a few, to keep the
// number near that of the keys in use, and at more where it needs the room.
const (
	sweepAlways = 4
	sweepForced = 16
)

// room reports whether there is room for a new key.
func (s *shard[K]) room(g *Group[K], at time.Duration) bool {
	seen, gone := 0, 0
	for i := range s.classes {
		c := &s.classes[i]
		now := c.by.units(c.by.clamp(at))
		for key, full := range c.full {
			if full < now-c.by.slack { // nothing is known of it that a new one would not be granted
				delete(c.full, key)
				gone++
			}
			if seen++; seen >= sweepForced || seen >= sweepAlways && s.keys-gone < s.max {
				break
			}
		}
	}
	s.keys -= gone
	g.evictions.Add(int64(gone))
	return s.keys < s.max
}

// takeNew answers for a key for which there is no room.
func (c *class[K]) takeNew(r *Result, o Overflow, at time.Duration, n int) {
	switch o {
	case ShareNew:
		if next := c.by.decide(r, at, c.shared, n); r.OK {
			c.shared = next
		}
	case PassNew:
		c.by.look(r, at, always, 0, n)
	case RefuseNew:
		*r = Result{Limit: c.by.burst, RetryAfter: c.by.until(c.by.units(c.by.clamp(at))+c.by.cost, c.by.clamp(at))}
	}
}
