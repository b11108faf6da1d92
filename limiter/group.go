package limiter

import (
	"hash/maphash"
	"iter"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/internal/adminhook"

	"github.com/weir-go/weir/internal/busy"
	"github.com/weir-go/weir/stat"
)

// Group is one [TokenBucket] per key, such as a user, an address or an action, in bounded memory.
//
// A key uses no memory until it takes tokens. A key is idle if its bucket is full again. When a new
// key needs room, the group forgets an idle key. That changes no decision, because a full bucket is
// like a new one. A key in use is never forgotten for a new one, so new keys cannot give an old one
// a second burst.
//
// Keys are compared as a whole, not by hash. A key that is not equal to itself, such as a NaN,
// never has room. All methods are safe for concurrent use, and none of them blocks. The zero value
// does not work: use NewGroup.
type Group[K comparable] struct {
	*statistics
	busiest    *busy.Sketch[K] // nil if the group has no name
	epoch      time.Time
	tierOf     func(K) int
	copyKey    func(K) K // makes the stored copy of a new key; nil stores the key itself
	seed       maphash.Seed
	overflow   Overflow
	maxKeys    int64
	maxWaiters int
	keyCount   atomic.Int64  // keys remembered in all shards
	holdCount  atomic.Int64  // keys held in all shards
	noRoom     atomic.Int64  // requests and holds of keys for which there was no room
	nextShard  atomic.Uint64 // the next other shard to search for idle keys
	shards     []shard[K]
	queues     keyQueues[K]

	mu    sync.Mutex               // held while limits are changed
	tiers []atomic.Pointer[limits] // the first is that of the group itself
	first atomic.Pointer[Tier]     // the values that tiers[0] was made of
	set   adminhook.Number         // of first
	// by tier, the bucket of all keys without room, if Overflow is ShareNew
	shared []*TokenBucket
}

// NewGroup returns a group without keys. It panics with the error of c.Validate if c is invalid.
func NewGroup[K comparable](c GroupConfig[K]) *Group[K] { return NewGroupAt(c, time.Now()) }

// NewGroupAt is like NewGroup, for use with TakeAt from t0 on.
func NewGroupAt[K comparable](c GroupConfig[K], t0 time.Time) *Group[K] {
	if err := c.Validate(); err != nil {
		panic(err)
	}
	c = c.withDefaults()
	tiers := c.allTiers()
	g := &Group[K]{
		epoch: t0, tierOf: c.TierOf, seed: maphash.MakeSeed(), overflow: c.Overflow, maxKeys: int64(c.MaxKeys), maxWaiters: c.MaxWaiters,
		shards: make([]shard[K], min(64, (c.MaxKeys+127)/128)), tiers: make([]atomic.Pointer[limits], len(tiers)),
	}
	g.statistics = newStatistics(c.Name, c.Shadow, nil)
	if c.Name != "" {
		g.busiest = busy.New[K](c.ShowKeys)
	}
	for i, t := range tiers {
		l := newLimits(t.Rate, t.Burst)
		g.tiers[i].Store(&l)
		if i == 0 {
			g.first.Store(&t)
		}
		if c.Overflow == ShareNew {
			b := NewTokenBucketAt(TokenBucketConfig{Rate: t.Rate, Burst: t.Burst, MaxWaiters: c.MaxWaiters}, t0)
			b.queue.keepStatistics(g.statistics)
			g.shared = append(g.shared, b)
		}
	}
	for i := range g.shards {
		s := &g.shards[i]
		s.latest = firstPosition
		s.tiers = make([]tierTable[K], len(tiers))
		for j := range s.tiers {
			s.tiers[j] = tierTable[K]{limits: g.tiers[j].Load(), table: table[K]{lastEvicted: alwaysFull + 1}, noRefundBefore: firstPosition}
		}
	}
	return g
}

// Get returns the limiter of the key. It does not remember the key, and allocates nothing.
func (g *Group[K]) Get(key K) Keyed[K] { return Keyed[K]{group: g, key: key} }

// All yields the remembered keys and their limiters, in no particular order. These are the keys in
// use and the idle keys not yet forgotten. Keys added during the iteration may be missing. No lock
// is held while the loop body runs.
func (g *Group[K]) All() iter.Seq2[K, Keyed[K]] {
	return func(yield func(K, Keyed[K]) bool) {
		for i := range g.shards {
			for _, key := range g.shards[i].keys() {
				if !yield(key, g.Get(key)) {
					return
				}
			}
		}
	}
}

// MaxKeys returns GroupConfig.MaxKeys, or its default.
func (g *Group[K]) MaxKeys() int { return int(g.maxKeys) }

// Len returns the number of remembered keys, including idle keys not yet forgotten.
func (g *Group[K]) Len() int { return int(g.keyCount.Load()) }

// Forget makes the bucket of the key full, ends its hold, and reports whether the key was
// remembered or held.
func (g *Group[K]) Forget(key K) bool {
	var p keyPosition[K]
	g.locate(&p, key)
	known := g.forget(&p)
	if q := g.queues.of(key); q != nil {
		q.wakeFirst()
	}
	return known
}

func (g *Group[K]) forget(p *keyPosition[K]) (known bool) {
	s := p.shard
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, known = s.holds[p.key]; known {
		delete(s.holds, p.key)
		g.holdCount.Add(-1)
	}
	at := clampTime(time.Since(g.epoch))
	for i := range s.tiers {
		s.tiers[i].noRefundBefore = max(s.tiers[i].noRefundBefore, at+1)
		if s.tiers[i].table.remove(p.hash, p.key) {
			g.keyCount.Add(-1)
			known = true
		}
	}
	return known
}

// Observe yields the metrics of the group (see [stat.Source]), or nothing if it has no name. It
// locks each part of the group for a moment.
func (g *Group[K]) Observe(yield func(*stat.Series, float64) bool) {
	if g.statistics == nil || !g.observeCounts(yield) ||
		!yield(g.series.Keys, float64(g.Len())) || !yield(g.series.Evictions, float64(g.evictions())) ||
		!yield(g.series.NoRoom(), float64(g.noRoom.Load())) {
		return
	}
	if tokens, period := g.limit(); tokens < math.MaxInt && yield(g.series.Limit, float64(tokens)) {
		yield(g.series.Period, period.Seconds())
	}
}

// evictions returns the number of idle keys that have been forgotten.
func (g *Group[K]) evictions() (keys int64) {
	for i := range g.shards {
		s := &g.shards[i]
		s.mu.Lock()
		keys += s.evictions
		s.mu.Unlock()
	}
	return keys
}

// withoutRoom returns the number of requests and holds of keys for which there was no room.
func (g *Group[K]) withoutRoom() int64 { return g.noRoom.Load() }

// limit returns the burst of a key without a tier, and the time in which its bucket fills up.
func (g *Group[K]) limit() (tokens int, period time.Duration) {
	l := g.tiers[0].Load()
	return l.burst, l.period()
}
