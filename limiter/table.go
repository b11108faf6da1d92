package limiter

import (
	"hash/maphash"
	"sync"
	"time"

	"github.com/weir-go/weir/internal/friend"
	"github.com/weir-go/weir/internal/keyed"
)

// shard is a part of the keys of a Group, under one lock.
type shard[K comparable] struct {
	mu        sync.Mutex
	tiers     []tierTable[K]
	held      bool                  // there may be holds
	holds     keyed.Map[K, keyHold] // of the keys that are held; dropHolds removes them
	evictions int64
	latest    time.Duration // the latest time of a request
	all       []hold        // by tier, the hold of all keys; nil if there is none
	_         [64]byte      // keeps the locks of two shards on different cache lines
}

// buckets are the buckets of keys: Until is the position at which a bucket is full. Then it is
// idle. A new key begins with the position LastEvicted, because it may be an evicted key that is
// used at an earlier time.
type buckets[K comparable] = keyed.Map[K, struct{}]

type slot[K comparable] = keyed.Slot[K, struct{}]

func noBuckets[K comparable]() buckets[K] { return buckets[K]{LastEvicted: alwaysFull} }

// tierTable holds the keys of one tier, and its limits.
type tierTable[K comparable] struct {
	buckets  buckets[K]
	limits   *limits
	refunded int64 // all units ever given back
	// Tokens taken before that time are not given back, because a key was forgotten since then, or
	// its hold has ended and its bucket is in the table.
	noRefundBefore time.Duration
}

// keyPosition says in which shard, tier and slot a key belongs.
type keyPosition[K comparable] struct {
	shard *shard[K]
	tier  int
	hash  uint64
	key   K
}

func (g *Group[K]) hash(key K) uint64 { return maphash.Comparable(g.seed, key) }

func (g *Group[K]) shardOf(hash uint64) *shard[K] { return &g.shards[hash%uint64(len(g.shards))] }

// locate fills in where a key belongs. It calls TierOf, so the caller must not hold a lock. It
// fills in p because a returned struct would be copied through memory.
func (g *Group[K]) locate(p *keyPosition[K], key K) {
	p.key, p.tier = key, 0
	if g.tierOf != nil {
		p.tier = min(max(g.tierOf(key), -1), len(g.tiers)-2) + 1
	}
	p.hash = g.hash(key)
	p.shard = g.shardOf(p.hash)
}

func (p *keyPosition[K]) tierTable() *tierTable[K] { return &p.shard.tiers[p.tier] }

// storedCopy returns the copy of a new key to store.
func (g *Group[K]) storedCopy(key K) K {
	if !g.clones { // the usual key, which would be allocated
		return key
	}
	return any(key).(friend.Cloner[K]).Clone(friend.Key{})
}

// idle returns a position. A bucket that was full before that position is idle: it is like a new
// bucket.
func (l *limits) idle(at time.Duration) int64 { return l.units(l.clamp(at)) - l.slack }

// keys returns the remembered keys.
func (s *shard[K]) keys() (keys []K) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.tiers {
		for b := range s.tiers[i].buckets.All() {
			keys = append(keys, b.Key)
		}
	}
	return keys
}

// acquireLocked takes n tokens of a key. It reports false if there is no room for the key. The
// caller holds the lock of the shard.
func (g *Group[K]) acquireLocked(p *keyPosition[K], r *Result, back *taken, at time.Duration, n int) bool {
	t, h := p.tierTable(), noHold
	if p.shard.held {
		h = g.holdOf(p, at)
	}
	s, known := t.buckets.Place(p.hash, p.key, t.limits.idle(at))
	if !known {
		if uint(n)-1 >= t.limits.counted || h.remaining(at) > 0 { // nothing will be taken
			t.limits.peek(r, at, max(t.buckets.LastEvicted, p.fullAfterHold()), h, 0, n)
			return true
		}
		if s = g.addKey(p, s, at, false); s != nil {
			s.Until = max(s.Until, p.fullAfterHold())
		}
	}
	full := p.bucket(s)
	if full == nil {
		return false
	}
	*full = t.limits.takeFrom(r, at, *full, h, n)
	if back != nil && r.OK && n > 0 && t.limits.counted > 0 {
		*back = taken{n: n, at: at, end: *full, refunded: t.refunded, limits: t.limits}
	}
	return true
}

// bucket returns the position at which the bucket of the key is full: that in its slot s of the
// table, or else that of its hold. It returns nil if there is neither.
func (p *keyPosition[K]) bucket(s *slot[K]) *int64 {
	if s != nil {
		return &s.Until
	}
	if own := p.ownHold(); own != nil {
		return &own.full
	}
	return nil
}

// ownHold returns the hold of the key alone, or nil.
func (p *keyPosition[K]) ownHold() *keyHold {
	if s := p.shard.holds.Find(p.hash, p.key); s != nil {
		return &s.Value
	}
	return nil
}

// fullAfterHold returns the position at which the bucket is full that a key uses which was held.
func (p *keyPosition[K]) fullAfterHold() int64 {
	if own := p.ownHold(); own != nil {
		return own.full
	}
	return alwaysFull
}

// predictLocked fills in the answer that acquireLocked would give if ahead other tokens were taken
// first.
func (g *Group[K]) predictLocked(p *keyPosition[K], r *Result, at time.Duration, ahead int64, n int) bool {
	t, h := p.tierTable(), noHold
	if p.shard.held {
		h = g.holdOf(p, at)
	}
	s, known := t.buckets.Place(p.hash, p.key, t.limits.idle(at))
	full := t.buckets.LastEvicted
	own := p.ownHold()
	switch {
	case known:
		full = s.Until
	case own != nil:
		full = max(full, own.full)
	case uint(n)-1 >= t.limits.counted, h.remaining(at) > 0:
	case !g.makeRoom(p, s, at):
		return false
	}
	t.limits.peek(r, at, full, h, ahead, n)
	return true
}

// addKey adds a new key with a full bucket, in the slot that find returned if possible. It returns
// nil if there is no room, unless the key must be added.
func (g *Group[K]) addKey(p *keyPosition[K], s *slot[K], at time.Duration, must bool) *slot[K] {
	t := p.tierTable()
	replaces := s.HasKey()
	room := g.makeRoom(p, s, at) && (replaces || incrementBelow(&g.keyCount, g.maxKeys))
	if !room && !must {
		return nil
	}
	if !room && !replaces {
		g.keyCount.Add(1)
	}
	s, evicted := t.buckets.Add(s, p.hash, g.storedCopy(p.key), t.limits.idle(at))
	s.Until = t.buckets.LastEvicted
	p.shard.evictions += int64(evicted)
	if replaces { // the key that left has the place of the new one
		evicted--
	}
	g.keyCount.Add(int64(-evicted))
	return s
}

// makeRoom reports whether there is room for a new key. It evicts idle keys if necessary, unless s,
// the slot that find returned, holds an idle key that the new one can replace.
func (g *Group[K]) makeRoom(p *keyPosition[K], s *slot[K], at time.Duration) bool {
	if p.key != p.key { //nolint:gocritic // a NaN would never be found again
		return false
	}
	if s.HasKey() || g.keyCount.Load() < g.maxKeys {
		return true
	}
	g.evictIdle(p.shard, at)
	if other := &g.shards[g.nextShard.Add(1)%uint64(len(g.shards))]; other != p.shard && other.mu.TryLock() {
		g.evictIdle(other, at)
		other.mu.Unlock()
	}
	return g.keyCount.Load() < g.maxKeys
}

// scanLength is how many slots are searched for idle keys, or holds for expired ones, when there is
// no room.
const scanLength = 16

func (g *Group[K]) evictIdle(s *shard[K], at time.Duration) {
	for i := range s.tiers {
		t := &s.tiers[i]
		evicted := int64(t.buckets.Evict(scanLength, t.limits.idle(at)))
		s.evictions += evicted
		g.keyCount.Add(-evicted)
	}
}
