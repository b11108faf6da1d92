package breaker

import (
	"hash/maphash"
	"iter"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/stat"
)

// Group has one breaker per key, such as a host, a tenant or a shard, in bounded memory.
//
//	var hosts = breaker.NewGroup[string]("hosts", breaker.GroupConfig{})
//
//	err := hosts.Get(req.URL.Host).Run(ctx, send)
//
// A key costs nothing until it is first asked for, and has one breaker from then on.
// When the group is full, a new key takes the place of an idle member: one that is
// closed, has no calls in its window and has not been asked for since the group last
// looked. Any other member stays. A breaker that was evicted passes every call, result
// and question on to the breaker that its key has now, as if the caller had called Get
// again. So a breaker may be kept for any time, and no key is judged by two of them.
//
// If no member can be evicted, a new key passes unguarded. It gets a breaker that all
// such keys share, that is forced closed, refuses nothing, and cannot be forced, reset or
// reconfigured. That is counted (GroupStats.Unguarded). Call Get for each call, so that
// the key gets its own breaker when there is room.
//
// All methods may be called from any number of goroutines. Get waits at most for a new
// key's search for room, some microseconds. A group starts no goroutine and no timer.
// Keys are compared as a whole, but for long ones: see GroupConfig.MaxKeys. A key that is
// not equal to itself, a NaN, passes unguarded.
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
	own       [3]*stat.Series // of the group itself: members, evictions, unguarded

	mu       sync.Mutex // held by observers alone, and by nobody that a call waits for
	watching observers[K]
}

// NewGroup returns a group without members. Its name is the name of each member; metrics
// tell members apart by their keys. NewGroup panics with the error of c.Validate if
// there is one.
func NewGroup[K comparable](name string, c GroupConfig) *Group[K] {
	return NewGroupAt[K](name, c, time.Now())
}

// NewGroupAt is NewGroup for a group that uses the times given to GetAt, from t0 on.
func NewGroupAt[K comparable](name string, c GroupConfig, t0 time.Time) *Group[K] {
	if err := c.Validate(); err != nil {
		panic(err)
	}
	c = c.orDefault()
	g := &Group[K]{
		name: name, config: c, epoch: t0, hash: maphash.MakeSeed(), own: newGroupSeries(name, t0),
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
		s.gone.figures = make([]float64, len(g.watching.others.order))
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

// GetAt is Get at the time t. A breaker that it makes begins at t and uses the times
// given to its At verbs.
func (g *Group[K]) GetAt(t time.Time, key K) *Breaker {
	if b := g.shard(key).find(key); b != nil {
		return b
	}
	return g.admit(key, t)
}

// Reconfigure gives all members another config, those that come later included. What it
// does to a member is what [Breaker.Reconfigure] does: its state and its calls stay. It
// also replaces what a member has been given by its own Reconfigure. If c is not valid
// its error is returned and nothing has changed.
func (g *Group[K]) Reconfigure(c Config) error { return g.ReconfigureAt(time.Now(), c) }

// ReconfigureAt is Reconfigure at the time t.
func (g *Group[K]) ReconfigureAt(t time.Time, c Config) error {
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

// All yields the keys and their breakers, in no particular order. Keys that come while it
// goes on may be missing. No lock is held meanwhile, so the group may be used.
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

// Len returns the number of members, GroupConfig.MaxKeys at most.
func (g *Group[K]) Len() int { return int(g.members.Load()) }

// Name returns the group's name.
func (g *Group[K]) Name() string { return g.name }

// GroupStats are the totals of a group, as plain numbers.
type GroupStats struct {
	Members   int   // as Len returns
	Evictions int64 // members that were evicted to make room
	Unguarded int64 // times that Get found no room, and returned the breaker that lets all pass
}

// Stats returns the totals of the group so far.
func (g *Group[K]) Stats() GroupStats {
	return GroupStats{Members: g.Len(), Evictions: g.evictions.Load(), Unguarded: g.passed.Load()}
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
	size := textIn(key)
	if size > maxText {
		return nil
	}
	if size > maxKey { // it is known by a shorter form, if it has one
		key = ownKey(key)
		if b := g.shard(key).find(key); b != nil {
			return b
		}
	}
	if t.Sub(g.epoch) < -reach { // stale for any clock, such as the zero time: no breaker begins there
		t = g.epoch
	}
	s := g.shard(key)
	if s.isFull(t) {
		return nil
	}
	key = ownKey(key)
	return s.admit(key, labelOf(key), t)
}
