package breaker

import (
	"errors"
	"fmt"
	"hash/maphash"
	"iter"
	"log/slog"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/internal/clock"
	"github.com/weir-go/weir/internal/keytext"
	"github.com/weir-go/weir/stat"
)

// A group is a bounded table of members, one per key. It evicts a member only if a new breaker
// would decide as the breaker of the member does. An evicted breaker remains usable: it passes
// every call, result and query on to the breaker that its key has now (member.go).

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

// GroupConfig configures a [Group]. The zero value is ready to use.
type GroupConfig struct {
	// Breaker is the Config of the breaker of each key. OnChange is called for the changes of all
	// breakers, and Change.Key is the key. The changes of one breaker come one at a time and in
	// order. Changes of different breakers may come at the same time, so OnChange must be safe for
	// concurrent use. A slow call of OnChange for one key delays no other key. With Latency each
	// breaker that is used takes about 44 kB more. Group.Reconfigure replaces Breaker. Default the
	// zero Config.
	Breaker Config
	// MaxKeys is the largest number of keys, at least 1. The table has parts that fill up
	// separately, so the group may be full with some per cent fewer. A key takes about 3 kB with
	// the default window, and at most 2 kB more for its text. A string key of more than 256 bytes
	// is kept as its beginning and a digest. A key of another type that refers to more than 1,024
	// bytes of text is unguarded. Default 100,000.
	MaxKeys int
	// MaxSeries is the number of keys with metric series of their own, at most half of MaxKeys, or
	// Off for none. The keys that were added first have such series. All other keys share one set
	// of series with the key _other, whose weir.breaker.state says how many they are. A key with
	// its own series is not evicted. After 10 minutes without a call its series end, and a key in
	// use gets new series, which begin at 0. Default 100, or half of MaxKeys if that is less.
	MaxSeries int
	// MaxOpen is the largest share of the keys that may be open at once, above 0 and at most 1, so
	// that a fault of the caller itself, such as a lost network, does not open all breakers. See
	// the package comment. Group.SetMaxOpen replaces MaxOpen. Default 0: no bound.
	MaxOpen float64
}

const (
	defaultMaxKeys   = 100_000
	defaultMaxSeries = 100
)

// Validate returns an error that names every invalid field, or nil.
func (c GroupConfig) Validate() error {
	var fs faults
	if err := c.Breaker.Validate(); err != nil {
		fs = append(fs, fmt.Errorf("breaker: Breaker: %w", err))
	}
	if c.MaxKeys < 0 {
		fs.add("MaxKeys is %d, must be at least 1", c.MaxKeys)
	}
	if c.MaxSeries < Off || c.MaxKeys >= 0 && c.MaxSeries > c.orDefault().MaxKeys/2 {
		fs.add("MaxSeries is %d, must be at least 1 and at most half of MaxKeys, or Off", c.MaxSeries)
	}
	if !(c.MaxOpen >= 0 && c.MaxOpen <= 1) {
		fs.add("MaxOpen is %v, must lie between 0 and 1", c.MaxOpen)
	}
	return errors.Join(fs...)
}

func (c GroupConfig) orDefault() GroupConfig {
	c.MaxKeys = valueOr(c.MaxKeys, defaultMaxKeys, Off)
	c.MaxSeries = valueOr(c.MaxSeries, min(defaultMaxSeries, c.MaxKeys/2), 0)
	return c
}

// neverFull is an offset that is later than any real time.
const neverFull = math.MinInt64

const (
	keysPerShard = 128 // larger if there would be more than maxShards shards otherwise
	maxShards    = 256
	// The most checks to find a member that can be evicted: each member is checked twice.
	maxChecks = 2 * keysPerShard
)

// shard is a part of the keys of a group.
type shard[K comparable] struct {
	group *Group[K]
	max   int // keys

	mu      sync.RWMutex // guards the fields below, except fullAt
	byKey   map[K]*member[K]
	ring    []*member[K] // the same members, in the order in which they are checked for eviction
	hand    int          // the member that was checked last
	evicted sum          // the counts of evicted members

	// the last time at which no member could be evicted, as offset from Group.epoch, or neverFull
	fullAt atomic.Int64
}

// find returns the breaker of the key, or nil.
func (s *shard[K]) find(key K) *Breaker {
	s.mu.RLock()
	m := s.byKey[key]
	s.mu.RUnlock()
	if m == nil {
		return nil
	}
	if !m.used.Load() {
		m.used.Store(true)
	}
	return m.breaker
}

func (s *shard[K]) members() []*member[K] {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return slices.Clone(s.ring)
}

// isFull reports whether no member could be evicted a moment ago. If so, new keys need not check
// many members again.
func (s *shard[K]) isFull(t time.Time) bool {
	full := s.fullAt.Load()
	since := int64(t.Sub(s.group.epoch)) - full
	return full != neverFull && since >= 0 && since < int64(s.group.rules.Load().timeToEmpty()/100)
}

// add returns the breaker of the key, a new one if it has none, or nil if there is no room.
func (s *shard[K]) add(key K, label string, t time.Time) *Breaker {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m := s.byKey[key]; m != nil {
		return m.breaker
	}
	g := s.group
	r := g.rules.Load()
	i := s.makeRoom(r, t)
	if i < 0 {
		return nil
	}
	m := &member[K]{key: key, shard: s, usedAt: t, number: g.admissions.Add(1)}
	m.label, m.group = label, m
	m.breaker = build(g.name, r, t, &m.membership, g.override.currentOverride())
	m.breaker.joinPlaces(&g.places)
	m.used.Store(true)
	s.byKey[key], s.ring[i] = m, m
	return m.breaker
}

// makeRoom returns the index in ring for a new member, or -1 if there is no room. If ring is full,
// it evicts a member and returns the index of that member. A member that was used since the last
// check is spared once.
func (s *shard[K]) makeRoom(r *rules, t time.Time) int {
	if len(s.ring) < s.max {
		s.ring = append(s.ring, nil)
		s.group.members.Add(1)
		return len(s.ring) - 1
	}
	for range min(2*len(s.ring), maxChecks) {
		s.hand = (s.hand + 1) % len(s.ring)
		if m := s.ring[s.hand]; m.evict(r, t) {
			s.remove(m)
			s.group.evictions.Add(1)
			return s.hand
		}
	}
	s.fullAt.Store(int64(t.Sub(s.group.epoch)))
	return -1
}

// forget removes the member of the key and returns it, or nil if there is none.
func (s *shard[K]) forget(key K, t time.Time) *member[K] {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.byKey[key]
	if m == nil {
		return nil
	}
	m.breaker.evictAnyState(t)
	s.remove(m)
	i, last := slices.Index(s.ring, m), len(s.ring)-1
	s.ring[i] = s.ring[last]
	s.ring = slices.Delete(s.ring, last, last+1)
	s.hand = 0
	s.fullAt.Store(neverFull)
	s.group.members.Add(-1)
	return m
}

// remove removes a member whose breaker was evicted. Its counts stay in the sum of the evicted
// members.
func (s *shard[K]) remove(m *member[K]) {
	s.evicted.add(s.group.observers.others.countersOf(m.breaker), 1)
	delete(s.byKey, m.key)
}
