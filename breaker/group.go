package breaker

import (
	"hash/maphash"
	"iter"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/internal/clock"
	"github.com/weir-go/weir/internal/keytext"
	"github.com/weir-go/weir/stat"
)

// A group is a bounded table of members, one per key, and evicts only a member that would decide as
// a new breaker does. An evicted breaker stays a handle: it passes every call, result and question
// on to the breaker that its key has now (groupforward.go).

// Group has one breaker per key, such as a host, a tenant or a shard, in bounded memory.
//
//	var hosts = breaker.NewGroup[string]("hosts", breaker.GroupConfig{})
//
//	err := hosts.Get(req.URL.Host).Run(ctx, send)
//
// A Group has at most GroupConfig.MaxKeys keys. A key takes no memory until Get is first called for
// it. When the group is full, a new key takes the place of an idle one. A key is idle if a new
// breaker would decide as its breaker does: it is closed, has no calls in its window, and Get was not
// called for it since the group last looked. A key with metric series of its own is not idle. A Group
// starts no goroutine and no timer.
//
// A breaker may be kept for any time. After its key was evicted it passes every call, result and
// question on to the breaker that the key has now, as if the caller had called Get again. So no key
// is judged by two breakers.
//
// If no key is idle, a new key passes unguarded. It gets a breaker that all such keys share, that is
// forced closed, refuses nothing, and cannot be forced, reset or reconfigured. The metric
// weir.breaker.group.unguarded counts these calls of Get. Call Get for each call, so that the key gets
// its own breaker when there is room.
//
// All methods may be called from any number of goroutines. Get waits at most for a new key's search
// for room, which takes some microseconds. Keys are compared as a whole, except for long ones: see
// GroupConfig.MaxKeys. A key that is not equal to itself, such as a NaN, passes unguarded.
type Group[K comparable] struct {
	name      string
	config    GroupConfig // with its defaults
	rules     atomic.Pointer[rules]
	epoch     time.Time
	hash      maphash.Seed
	shards    []shard[K]
	unguarded *Breaker
	passed    atomic.Int64
	evictions atomic.Int64
	members   atomic.Int64
	admitted  atomic.Int64
	series    [3]*stat.Series // of the group itself: members, evictions, unguarded

	mu       sync.Mutex // held by observers and Forget, and by nothing that a call waits for
	watching observers[K]
}

// NewGroup returns a group without keys. The name is that of each breaker; metrics tell them apart by
// their keys. NewGroup panics with the error of c.Validate if there is one.
func NewGroup[K comparable](name string, c GroupConfig) *Group[K] {
	return newGroupAt[K](name, c, time.Now())
}

// newGroupAt is NewGroup for a group that uses the times given to getAt, from t0 on.
func newGroupAt[K comparable](name string, c GroupConfig, t0 time.Time) *Group[K] {
	if err := c.Validate(); err != nil {
		panic(err)
	}
	c = c.orDefault()
	g := &Group[K]{
		name: name, config: c, epoch: t0, hash: maphash.MakeSeed(), series: newGroupSeries(name, t0),
		shards: make([]shard[K], min((c.MaxKeys+perShard-1)/perShard, maxShards)),
	}
	g.rules.Store(newRules(c.Breaker.orDefault()))
	g.unguarded = build(name, unguardedRules(c.Breaker), t0, &hold{label: otherKey})
	g.watching.begin(name, t0)
	for i := range g.shards {
		s := &g.shards[i]
		s.group, s.max = g, (c.MaxKeys+i)/len(g.shards)
		s.byKey = map[K]*member[K]{}
		s.fullAt.Store(neverFull)
		s.gone = g.watching.others.zero()
	}
	return g
}

// unguardedRules are those of the breaker for keys without room: it counts calls as the
// members do, and opens for nothing.
func unguardedRules(c Config) *rules {
	open := Config{
		Initial: ForcedClosed, FailureRate: Off, Classify: c.Classify, Active: c.Active, SlowCall: c.SlowCall, Latency: c.Latency,
	}
	if c.SlowCall > 0 {
		open.SlowRate = Off
	}
	return newRules(open.orDefault())
}

// Get returns the breaker of the key. It allocates nothing for a key that has one.
func (g *Group[K]) Get(key K) *Breaker {
	if b := g.shard(key).find(key); b != nil {
		return b
	}
	return g.admit(key, time.Now())
}

// getAt is Get at the time t. A breaker that it makes begins at t and uses the times
// given to its At verbs.
func (g *Group[K]) getAt(t time.Time, key K) *Breaker {
	if b := g.shard(key).find(key); b != nil {
		return b
	}
	return g.admit(key, t)
}

// Reconfigure changes the config of all keys, of those added later too. A breaker keeps its state and
// its calls: see [Breaker.Reconfigure]. A config that a breaker was given by its own Reconfigure is
// replaced. If c is not valid, Reconfigure returns the error of c.Validate and changes nothing.
func (g *Group[K]) Reconfigure(c Config) error { return g.reconfigureAt(time.Now(), c) }

// reconfigureAt is Reconfigure at the time t.
func (g *Group[K]) reconfigureAt(t time.Time, c Config) error {
	if err := c.Validate(); err != nil {
		return err
	}
	g.rules.Store(newRules(c.orDefault())) // first, so that members with the old ones are among those below
	g.unguarded.obey(func() *rules { return unguardedRules(g.rules.Load().config) }, t)
	for i := range g.shards {
		for _, m := range g.shards[i].list(nil) {
			m.breaker.obey(g.rules.Load, t)
		}
	}
	return nil
}

// All yields the keys and their breakers, in no particular order. Keys that are added meanwhile may
// be missing. No lock is held while the loop body runs, so it may use the group.
func (g *Group[K]) All() iter.Seq2[K, *Breaker] {
	return func(yield func(K, *Breaker) bool) {
		for i := range g.shards {
			for _, m := range g.shards[i].list(nil) {
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
// The next call of the key starts with a new breaker. The series of the key's own end. Forget is
// meant for keys that are gone for good, such as a host that was shut down. To close a breaker, use
// [Breaker.Reset].
func (g *Group[K]) Forget(key K) bool {
	key = keytext.Bounded(key)
	g.mu.Lock() // before the shard's lock, as observers do
	defer g.mu.Unlock()
	m := g.shard(key).forget(key, time.Now())
	if m == nil {
		return false
	}
	if m.pinned {
		g.watching.end(m)
	}
	return true
}

func (g *Group[K]) shard(key K) *shard[K] {
	return &g.shards[maphash.Comparable(g.hash, key)%uint64(len(g.shards))]
}

// admit returns the breaker of a key that no member has, as it stands. It renders the
// key, which may call a method of its, outside all locks.
func (g *Group[K]) admit(key K, t time.Time) *Breaker {
	if key == key { //nolint:gocritic // a NaN is not, and would never be found again
		if b := g.admitKey(key, t); b != nil {
			return b
		}
	}
	g.passed.Add(1)
	return g.unguarded
}

func (g *Group[K]) admitKey(key K, t time.Time) *Breaker {
	size := keytext.Size(key)
	if size > keytext.MaxText {
		return nil
	}
	if size > keytext.MaxKey { // it is known by a shorter form, if it has one
		key = keytext.Own(key)
		if b := g.shard(key).find(key); b != nil {
			return b
		}
	}
	if t.Sub(g.epoch) < -clock.MaxOffset { // stale for any clock, such as the zero time: no breaker begins there
		t = g.epoch
	}
	s := g.shard(key)
	if s.isFull(t) {
		return nil
	}
	key = keytext.Own(key)
	return s.admit(key, keytext.Label(key), t)
}
