package breaker

import (
	"hash/maphash"
	"iter"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/internal/clock"
	"github.com/weir-go/weir/internal/keytext"
	"github.com/weir-go/weir/stat"
)

// A group is a bounded table of members, one per key. It evicts a member only if a new breaker
// would decide as the breaker of the member does. An evicted breaker remains usable: it passes
// every call, result and query on to the breaker that its key has now (successor.go).

// Group has one breaker per key, such as a host, a tenant or a shard, in bounded memory.
//
//	var hosts = breaker.NewGroup[string]("hosts", breaker.GroupConfig{})
//
//	err := hosts.Get(req.URL.Host).Run(ctx, send)
//
// A Group has at most GroupConfig.MaxKeys keys. A key takes no memory until Get is first called for
// it. When the group is full, a new key replaces an idle key. A key is idle if a new breaker would
// decide as its breaker does: the breaker is closed and has no calls in its window, and Get was not
// called for the key since the group last checked. A key with metric series of its own is not idle.
// A Group starts no goroutine and no timer.
//
// A caller may keep a breaker for any time. After its key was evicted, the breaker passes every
// call, result and query on to the breaker that the key has now, as if the caller had called Get
// again. So no key is judged by two breakers.
//
// If no key is idle, a new key is unguarded: it gets a breaker that all such keys share. This
// breaker is forced closed, refuses nothing unless Config.Refuse is set, and cannot be forced,
// reset or reconfigured. The metric weir.breaker.group.unguarded counts these calls of Get. Call
// Get for each call, so that the key gets its own breaker when there is room.
//
// All methods may be called from any number of goroutines. Get blocks only while room is searched
// for a new key, which takes some microseconds. Keys are compared as a whole, except for long keys:
// see GroupConfig.MaxKeys. A key that is not equal to itself, such as NaN, is unguarded. The zero
// value does not work: use NewGroup.
type Group[K comparable] struct {
	name      string
	config    GroupConfig // with its defaults
	rules     atomic.Pointer[rules]
	epoch     time.Time
	hashSeed  maphash.Seed
	shards    []shard[K]
	unguarded *Breaker

	members        atomic.Int64
	evictions      atomic.Int64
	unguardedCalls atomic.Int64              // calls of Get that found no room
	saidFull       atomic.Pointer[time.Time] // when that was last logged
	places         openPlaces
	override       groupOverride[K]
	admissions     atomic.Int64 // keys added so far
	series         [4]*stat.Series

	mu        sync.Mutex // held by observers and Forget, never by a call
	observers observerState[K]
}

// NewGroup returns a group without keys. All its breakers have the given name. Metrics distinguish
// them by key. NewGroup panics with the error of c.Validate if there is one.
func NewGroup[K comparable](name string, c GroupConfig) *Group[K] {
	return newGroupAt[K](name, c, time.Now())
}

// newGroupAt is like NewGroup, but the group begins at t0 and uses the times given to getAt.
func newGroupAt[K comparable](name string, c GroupConfig, t0 time.Time) *Group[K] {
	if err := c.Validate(); err != nil {
		panic(err)
	}
	c = c.orDefault()
	g := &Group[K]{
		name: name, config: c, epoch: t0, hashSeed: maphash.MakeSeed(), series: newGroupSeries(name, t0),
		shards: make([]shard[K], min((c.MaxKeys+keysPerShard-1)/keysPerShard, maxShards)),
	}
	g.rules.Store(newRules(c.Breaker.orDefault()))
	g.places.members = &g.members
	g.places.setShare(c.MaxOpen)
	g.unguarded = build(name, unguardedRules(c.Breaker), t0, &membership{label: otherKey}, "")
	g.observers.init(name, t0)
	for i := range g.shards {
		s := &g.shards[i]
		s.group, s.max = g, (c.MaxKeys+i)/len(g.shards)
		s.byKey = map[K]*member[K]{}
		s.fullAt.Store(neverFull)
		s.evicted = g.observers.others.emptySum()
	}
	return g
}

// unguardedRules returns the rules of the breaker for keys without room. It counts calls as members
// do, and never opens.
func unguardedRules(c Config) *rules {
	u := Config{
		Initial: ForcedClosed, FailureRate: Off, Classify: c.Classify, Active: c.Active, SlowCall: c.SlowCall, Latency: c.Latency,
		CooldownJitter: c.CooldownJitter, // the jitter of holds
		Refuse:         c.Refuse,
	}
	if c.SlowCall > 0 {
		u.SlowRate = Off
	}
	return newRules(u.orDefault())
}

// Get returns the breaker of the key. It allocates no memory for a key that has one.
func (g *Group[K]) Get(key K) *Breaker {
	if b := g.shard(key).find(key); b != nil {
		return b
	}
	return g.add(key, time.Now())
}

// getAt is Get at the time t. A new breaker begins at t.
func (g *Group[K]) getAt(t time.Time, key K) *Breaker {
	if b := g.shard(key).find(key); b != nil {
		return b
	}
	return g.add(key, t)
}

// Reconfigure replaces the Config of all keys, including keys added later, and any Config that
// [Breaker.Reconfigure] has set. Breakers keep their states and calls as described there. If c is
// not valid, Reconfigure returns the error of c.Validate and changes nothing.
func (g *Group[K]) Reconfigure(c Config) error { return g.reconfigureAt(time.Now(), c) }

// reconfigureAt is Reconfigure at the time t.
func (g *Group[K]) reconfigureAt(t time.Time, c Config) error {
	if err := c.Validate(); err != nil {
		return err
	}
	// set first, so that all members with the old rules are in the lists below
	g.rules.Store(newRules(c.orDefault()))
	g.unguarded.setGroupRules(func() *rules { return unguardedRules(g.rules.Load().config) }, t)
	for _, b := range g.All() {
		b.setGroupRules(g.rules.Load, t)
	}
	return nil
}

// SetMaxOpen replaces GroupConfig.MaxOpen, or returns an error if the share is not valid. If more
// keys are open than the new share allows, they stay open, and no other key opens until enough of
// them have closed.
func (g *Group[K]) SetMaxOpen(share float64) error {
	if err := (GroupConfig{MaxOpen: share}).Validate(); err != nil {
		return err
	}
	g.places.setShare(share)
	return nil
}

// All yields the keys and their breakers, in no particular order. Keys that are added meanwhile may
// be missing. No lock is held while the loop body runs, so it may use the group.
func (g *Group[K]) All() iter.Seq2[K, *Breaker] {
	return func(yield func(K, *Breaker) bool) {
		for i := range g.shards {
			for _, m := range g.shards[i].members() {
				if !yield(m.key, m.breaker) {
					return
				}
			}
		}
	}
}

// Len returns the number of keys, at most GroupConfig.MaxKeys.
func (g *Group[K]) Len() int { return int(g.members.Load()) }

// Forget removes the key, whatever the state of its breaker, and reports whether the group had it.
// The next call of the key starts with a new breaker, and the series of the key end. Use Forget for
// a key that no longer exists, such as a host that was shut down. To close a breaker, use
// [Breaker.Reset].
func (g *Group[K]) Forget(key K) bool {
	key = keytext.Bounded(key)
	g.mu.Lock() // before the lock of the shard, in the order of observers
	m := g.shard(key).forget(key, time.Now())
	if m != nil && m.pinned {
		g.observers.forget(m)
	}
	g.mu.Unlock()
	if m == nil {
		return false
	}
	m.breaker.changes.deliver()
	m.breaker.changes.abandonWatchers()
	return true
}

// findAny returns the breaker of the key that a *K points to, or nil if the key has none.
func (g *Group[K]) findAny(key any) *Breaker {
	k := *key.(*K)
	return g.shard(k).find(k)
}

func (g *Group[K]) shard(key K) *shard[K] {
	return &g.shards[maphash.Comparable(g.hashSeed, key)%uint64(len(g.shards))]
}

// add returns a breaker for a key that was not found: a new breaker, or the breaker that all keys
// without room share.
func (g *Group[K]) add(key K, t time.Time) *Breaker {
	if key == key { //nolint:gocritic // NaN is not, and would never be found again
		if b := g.tryAdd(key, t); b != nil {
			return b
		}
	}
	g.unguardedCalls.Add(1)
	g.logFull()
	return g.unguarded
}

// logFull logs that the group is full, at most once per minute. No lock is held.
func (g *Group[K]) logFull() {
	last := g.saidFull.Load()
	if g.members.Load() < int64(g.config.MaxKeys) || last != nil && time.Since(*last).Abs() < time.Minute {
		return
	}
	if now := time.Now(); !g.saidFull.CompareAndSwap(last, &now) {
		return
	}
	slog.Warn("breaker: no room for new keys of a group, which no breaker guards: raise MaxKeys", "group", g.name, "MaxKeys", g.config.MaxKeys)
}

// tryAdd returns nil if there is no room. It makes the text of the key, which may call a method of
// the key, outside all locks.
func (g *Group[K]) tryAdd(key K, t time.Time) *Breaker {
	size := keytext.Size(key)
	if size > keytext.MaxText {
		return nil
	}
	if size > keytext.MaxKey { // the group may have the key under its shortened text
		key = keytext.Own(key)
		if b := g.shard(key).find(key); b != nil {
			return b
		}
	}
	if t.Sub(g.epoch) < -clock.MaxOffset { // stale for any clock, such as the zero time
		t = g.epoch
	}
	s := g.shard(key)
	if s.isFull(t) {
		return nil
	}
	key = keytext.Own(key)
	return s.add(key, keytext.Label(key), t)
}
