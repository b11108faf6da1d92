package limiter

import (
	"hash/maphash"
	"sync"
	"time"
)

// shard is a part of the keys of a Group.
type shard[K comparable] struct {
	mu        sync.Mutex
	classes   []class[K]    // one a tier
	holds     map[K]keyHold // of the keys that are held
	evictions int64
	_         [64]byte // the locks of two shards lie on different lines
}

// class is the keys of one tier.
type class[K comparable] struct {
	table table[K]
	by    *limits // what the positions mean
}

// place is where a key belongs.
type place[K comparable] struct {
	shard *shard[K]
	tier  int
	hash  uint64 // not 0
	key   K
}

func (g *Group[K]) hash(key K) uint64 { return maphash.Comparable(g.seed, key) }

// place finds where a key belongs. It calls TierOf, so the caller must hold no lock. It fills in what p points to, as a
// struct that is returned is copied through memory.
func (g *Group[K]) place(p *place[K], key K) {
	p.key, p.tier = key, 0
	if g.tier != nil {
		p.tier = min(max(g.tier(key), -1), len(g.tiers)-2) + 1
	}
	hash := g.hash(key)
	p.shard, p.hash = &g.shards[hash%uint64(len(g.shards))], hash|1
}

func (p *place[K]) class() *class[K] { return &p.shard.classes[p.tier] }

// idle is the position before which a full bucket is as good as a new one.
func (l *limits) idle(at time.Duration) int64 { return l.units(l.clamp(at)) - l.slack }

// keys returns the keys that are remembered.
func (s *shard[K]) keys() (keys []K) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.classes {
		t := &s.classes[i].table
		for j := range t.slots {
			if t.slots[j].used() {
				keys = append(keys, t.slots[j].key)
			}
		}
	}
	return keys
}

// change makes other limits those of a tier. All its keys are carried over at once, as of the time of the change.
func (s *shard[K]) change(tier int, by *limits, at time.Duration) {
	c := &s.classes[tier]
	for i := range c.table.slots {
		if slot := &c.table.slots[i]; slot.used() {
			slot.full = by.carryIdle(c.by, slot.full, at)
		}
	}
	c.table.dropped = by.carryIdle(c.by, c.table.dropped, at)
	for key, h := range s.holds {
		if h.tier == tier {
			h.hold = by.carryHold(c.by, h.hold, at)
			s.holds[key] = h
		}
	}
	c.by = by
}

// carryIdle is carry for which a bucket that was idle still is, if it is full, and has not just become full at this moment.
func (l *limits) carryIdle(old *limits, full int64, at time.Duration) int64 {
	now := l.carry(old, full, at)
	if full < old.idle(at) && now <= l.units(l.clamp(at)) {
		now = min(now, l.idle(at)-1)
	}
	return max(now, always+1)
}

// takeAt answers a request of a key. It reports false where there is no room for the key.
func (g *Group[K]) takeAt(p *place[K], r *Result, at time.Duration, n int) bool {
	c, h := p.class(), unheld
	if len(p.shard.holds) > 0 {
		h = g.heldAt(p, at)
	}
	b, known := c.table.seek(p.hash, p.key, c.by.idle(at))
	if !known {
		if uint(n)-1 >= c.by.usual || h.left(at) > 0 { // a peek, or nonsense, or no limit, or nothing to be had
			c.by.look(r, at, c.table.dropped, h, 0, n)
			return true
		}
		if b = g.admit(p, b, at); b == nil {
			return false
		}
	}
	b.full = c.by.decide(r, at, b.full, h, n)
	return true
}

// lookAt tells what a request of a key would get after ahead other tokens. It reports false where there is no room for
// the key.
func (g *Group[K]) lookAt(p *place[K], r *Result, at time.Duration, ahead int64, n int) bool {
	c, h := p.class(), unheld
	if len(p.shard.holds) > 0 {
		h = g.heldAt(p, at)
	}
	b, known := c.table.seek(p.hash, p.key, c.by.idle(at))
	full := c.table.dropped
	switch {
	case known:
		full = b.full
	case uint(n)-1 >= c.by.usual, h.left(at) > 0:
	case !g.room(p, b, at):
		return false
	}
	c.by.look(r, at, full, h, ahead, n)
	return true
}

// admit gives a new key, with a full bucket, the slot that seek has found for it or, where that must not be
// used, another. It returns nil where there is no room.
func (g *Group[K]) admit(p *place[K], b *slot[K], at time.Duration) *slot[K] {
	c := p.class()
	if !g.room(p, b, at) || !b.used() && !claim(&g.keys, g.maxKeys) {
		return nil
	}
	if b.hash == 0 && c.table.crowded() {
		idle := c.by.idle(at)
		g.forgot(p.shard, c.table.rebuild(idle))
		b, _ = c.table.seek(p.hash, p.key, idle)
	}
	key := p.key
	if g.copied != nil {
		key = g.copied(key)
	}
	if c.table.put(b, slot[K]{hash: p.hash, key: key, full: c.table.dropped}) {
		p.shard.evictions++
	}
	return b
}

// room reports whether there is room for a new key, which it makes if it can: the slot that seek has found holds a key
// that may go, or fewer keys are remembered than may be.
func (g *Group[K]) room(p *place[K], b *slot[K], at time.Duration) bool {
	if p.key != p.key { //nolint:gocritic // a NaN is not, and would never be found again
		return false
	}
	if b.used() || g.keys.Load() < g.maxKeys {
		return true
	}
	g.forgetIdle(p.shard, at)
	if other := &g.shards[g.hand.Add(1)%uint64(len(g.shards))]; other != p.shard && other.mu.TryLock() {
		g.forgetIdle(other, at)
		other.mu.Unlock()
	}
	return g.keys.Load() < g.maxKeys
}

// glance is how many slots, or holds, are looked at for idle ones when there is no room for another.
const glance = 16

func (g *Group[K]) forgetIdle(s *shard[K], at time.Duration) {
	for i := range s.classes {
		c := &s.classes[i]
		g.forgot(s, c.table.forget(glance, c.by.idle(at)))
	}
}

// forgot counts keys that have been forgotten.
func (g *Group[K]) forgot(s *shard[K], keys int) {
	s.evictions += int64(keys)
	g.keys.Add(int64(-keys))
}
