package limiter

import (
	"errors"
	"fmt"
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"
)

// GroupConfig configures a [Group].
type GroupConfig[K comparable] struct {
	// Rate is how fast tokens come to each key. Must be given.
	Rate Rate
	// Burst is the most tokens of a key, up to 2^40. Off admits nothing. Default: the tokens of one
	// second, at least 1.
	Burst int
	// MaxKeys is the most keys that are remembered, and the most that are held. Default 100,000.
	MaxKeys int
	// Overflow is what becomes of a new key when all remembered keys are in use. Default RefuseNew.
	Overflow Overflow
	// MaxWaiters is the most callers that may wait for one key at once; the next gets ErrQueueFull.
	// Default: no bound.
	MaxWaiters int
	// Tiers are limits for keys that have others. Default: the limits above for all keys.
	Tiers []Tier
	// TierOf returns which of Tiers is a key's, by its index. A negative index means the limits above,
	// one that is too high the last tier. TierOf is called once per decision and must be quick. A key
	// whose tier changes starts anew in its new tier. Must be given with Tiers, and only then.
	TierOf func(key K) int
	// Name stands in errors and metrics. A group with a name keeps statistics, the sum over all keys,
	// and is a [stat.Source]: no key ever is the label of a metric. Default: no name and no statistics.
	Name string
	// Named is what a group with a name does besides. Default [NamedConfig]'s own.
	Named NamedConfig
}

// Tier is the limits of some of the keys of a [Group].
type Tier struct {
	// Rate is how fast tokens come to each key. Must be given.
	Rate Rate
	// Burst is the most tokens of a key, up to 2^40. Off admits nothing. Default: the tokens of one
	// second, at least 1.
	Burst int
}

// Validate returns nil for a configuration that makes sense, and otherwise an error that names all faults.
func (c GroupConfig[K]) Validate() error {
	faults := []error{TokenBucketConfig{Rate: c.Rate, Burst: c.Burst}.Validate()}
	for i, t := range c.Tiers {
		if err := (TokenBucketConfig{Rate: t.Rate, Burst: t.Burst}).Validate(); err != nil {
			faults = append(faults, fmt.Errorf("tier %d: %w", i, err))
		}
	}
	if (c.TierOf == nil) != (len(c.Tiers) == 0) {
		faults = append(faults, fmt.Errorf("limiter: Tiers are %d and TierOf is given: %t, must be both or neither", len(c.Tiers), c.TierOf != nil))
	}
	if c.MaxKeys < 0 {
		faults = append(faults, fmt.Errorf("limiter: MaxKeys is %d, must be at least 1 (or 0 for the default)", c.MaxKeys))
	}
	if c.MaxWaiters < 0 {
		faults = append(faults, fmt.Errorf("limiter: MaxWaiters is %d, must be at least 1 (or 0 for no bound)", c.MaxWaiters))
	}
	if c.Overflow > ShareNew {
		faults = append(faults, fmt.Errorf("limiter: Overflow is %d, must be RefuseNew, PassNew or ShareNew", uint8(c.Overflow)))
	}
	return errors.Join(append(faults, c.Named.validateFor(c.Name))...)
}

// Group is one [TokenBucket] per key: a limit for each user, address or action, in bounded memory.
//
// A key costs nothing until it is first used, and is forgotten once it is idle, to make room for new keys. That changes no
// decision, because a bucket that has become full again is the same as a new one. A key that is in use is never forgotten: no
// caller is admitted again because other keys have come.
// Keys are compared as a whole, not by a hash. A key that is not equal to itself, such as a NaN, finds no room.
//
// [Group.Get] returns the limiter of a key. All methods are safe for concurrent use, and none blocks.
type Group[K comparable] struct {
	*statistics
	epoch    time.Time
	tier     func(K) int
	copied   func(K) K // returns what is stored of a new key; nil for the key itself
	seed     maphash.Seed
	overflow Overflow
	maxKeys  int64
	keys     atomic.Int64  // remembered by all shards
	held     atomic.Int64  // keys that are held, likewise
	hand     atomic.Uint64 // where room is looked for beside a key's own shard
	shards   []shard[K]

	mu    sync.Mutex               // held while a tier is changed
	tiers []atomic.Pointer[limits] // the first is that of the group itself
	spare []*TokenBucket           // for each tier, of all keys for which there is no room, where they share one

	lines      lines[K]
	maxWaiters int
}

const defaultMaxKeys = 100_000

// NewGroup makes a group without keys. It panics with the error of c.Validate where there is one.
func NewGroup[K comparable](c GroupConfig[K]) *Group[K] { return NewGroupAt(c, time.Now()) }

// NewGroupAt makes a group that is driven by given times, from t0 on.
func NewGroupAt[K comparable](c GroupConfig[K], t0 time.Time) *Group[K] {
	if err := c.Validate(); err != nil {
		panic(err)
	}
	if c.MaxKeys == 0 {
		c.MaxKeys = defaultMaxKeys
	}
	rates := append([]Tier{{Rate: c.Rate, Burst: c.Burst}}, c.Tiers...)
	g := &Group[K]{
		epoch: t0, tier: c.TierOf, seed: maphash.MakeSeed(), overflow: c.Overflow, maxKeys: int64(c.MaxKeys),
		shards: make([]shard[K], min(64, (c.MaxKeys+127)/128)), tiers: make([]atomic.Pointer[limits], len(rates)),
		maxWaiters: c.MaxWaiters,
	}
	for i, t := range rates {
		by := newLimits(t.Rate, t.Burst)
		g.tiers[i].Store(&by)
		if c.Overflow == ShareNew {
			g.spare = append(g.spare, NewTokenBucketAt(TokenBucketConfig{Rate: t.Rate, Burst: t.Burst, MaxWaiters: c.MaxWaiters}, t0))
		}
	}
	g.statistics = newStatistics(c.Name, c.Named, nil)
	for i := range g.shards {
		s := &g.shards[i]
		s.classes = make([]class[K], len(rates))
		for j := range s.classes {
			s.classes[j] = class[K]{by: g.tiers[j].Load(), table: table[K]{dropped: always + 1}}
		}
	}
	return g
}

func (g *Group[K]) giveBack(key K, n int) {
	if n < 1 {
		return
	}
	if tier, known := g.refund(key, n); !known {
		if g.overflow == ShareNew && g.keys.Load() >= g.maxKeys {
			g.spare[tier].Refund(n)
		}
		return
	}
	if q := g.lines.of(key); q != nil {
		q.poke()
	}
}

func (g *Group[K]) refund(key K, n int) (tier int, known bool) {
	var p place[K]
	g.place(&p, key)
	p.shard.mu.Lock()
	defer p.shard.mu.Unlock()
	c := p.class()
	b, known := c.table.seek(p.hash, key, always)
	if known {
		b.full = max(c.by.refund(b.full, n), always+1)
	}
	return p.tier, known
}

// take takes n tokens, unless somebody waits for them.
func (g *Group[K]) take(r *Result, at time.Duration, key K, n int) {
	if q := g.lines.of(key); q != nil && q.ahead.Load() != 0 {
		g.look(r, at, key, 0, n)
		return
	}
	g.serve(r, at, key, n)
}

// look tells what Take answers once ahead other tokens have been taken, and takes nothing.
func (g *Group[K]) look(r *Result, at time.Duration, key K, ahead int64, n int) {
	waiting := int64(0)
	if q := g.lines.of(key); q != nil {
		waiting = q.ahead.Load()
	}
	g.after(r, at, key, waiting+ahead, n)
	if waiting != 0 {
		stepBack(r, n)
	}
}

// serve takes n tokens, whoever waits. It reports whether there is room for the key.
func (g *Group[K]) serve(r *Result, at time.Duration, key K, n int) (room bool) {
	var p place[K]
	g.place(&p, key)
	p.shard.mu.Lock()
	room = g.takeAt(&p, r, at, n)
	p.shard.mu.Unlock()
	if !room {
		g.takeNew(r, at, p.tier, n)
	}
	return room
}

// after tells how things stand for one who comes after ahead other tokens.
func (g *Group[K]) after(r *Result, at time.Duration, key K, ahead int64, n int) {
	var p place[K]
	g.place(&p, key)
	p.shard.mu.Lock()
	room := g.lookAt(&p, r, at, ahead, n)
	p.shard.mu.Unlock()
	if !room {
		g.lookNew(r, at, p.tier, ahead, n)
	}
}

// takeNew answers for a key for which there is no room.
func (g *Group[K]) takeNew(r *Result, at time.Duration, tier, n int) {
	if g.overflow == ShareNew {
		g.spare[tier].take(r, at, n)
		return
	}
	g.lookNew(r, at, tier, 0, n)
}

// lookNew is takeNew that takes nothing.
func (g *Group[K]) lookNew(r *Result, at time.Duration, tier int, ahead int64, n int) {
	switch by := g.tiers[tier].Load(); g.overflow {
	case ShareNew:
		g.spare[tier].look(r, at, ahead, n)
	case PassNew:
		by.look(r, at, always, unheld, 0, n)
	case RefuseNew:
		at = by.clamp(at)
		*r = Result{Limit: by.burst, RetryAfter: by.until(by.units(at)+by.cost, at)}
	}
}
