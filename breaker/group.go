package breaker

import (
	"fmt"
	"hash/maphash"
	"iter"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/stat"
)

// Group is a breaker a key: one for each host, tenant or shard, in bounded memory.
//
//	var hosts = breaker.NewGroup[string]("hosts", breaker.GroupConfig{})
//
//	err := hosts.Get(req.URL.Host).Run(ctx, send)
//
// A key costs nothing until it is first asked for, and has one breaker from then on:
// who asks for it at the same time, or again, gets the same one. When the group is
// full, a new key takes the place of a member that is idle: closed, without calls in
// its window, and not asked for lately. A fresh breaker would decide as it does, but
// for the moments at which its buckets begin. Even so the group finds it again as long
// as anybody has it: two holders of a key never have two breakers. A member that is not
// closed, or has failed or slow calls in its window, is never let go.
//
// Where no member can be let go, a new key passes unguarded: it gets a breaker that is
// shared by all such keys, is forced closed, and refuses nothing. That is counted
// (GroupStats.Unguarded); ask again for each call, so that the key gets its own when
// there is room.
//
// All methods may be called from any number of goroutines, and none blocks. No
// goroutine and no timer is ever started. Keys are compared as a whole; one that is not
// equal to itself, a NaN, passes unguarded.
type Group[K comparable] struct {
	name      string
	config    GroupConfig // with its defaults
	rules     *rules
	epoch     time.Time
	rest      time.Duration // see release
	hash      maphash.Seed
	shards    []shard[K]
	unguarded *Breaker
	passed    atomic.Int64
	evictions atomic.Int64
	placed    atomic.Int64 // members with a place
	extra     atomic.Int64 // members without one that are kept all the same

	other *sums
	own   [3]*stat.Series // of the group itself: members, evictions, unguarded

	mu    sync.Mutex // guards seats
	seats map[string]struct{}
}

// NewGroup returns a group without members. Its name is the name of each member,
// which metrics tell apart by their keys. NewGroup panics with the error of c.Validate
// if there is one.
func NewGroup[K comparable](name string, c GroupConfig) *Group[K] {
	return NewGroupAt[K](name, c, time.Now())
}

// NewGroupAt is NewGroup for a group that lives on the times given to GetAt, from t0 on.
func NewGroupAt[K comparable](name string, c GroupConfig, t0 time.Time) *Group[K] {
	if err := c.Validate(); err != nil {
		panic(err)
	}
	c = c.orDefault()
	rules := newRules(c.Breaker.orDefault())
	g := &Group[K]{
		name: name, config: c, rules: rules, epoch: t0, rest: rules.rest(), hash: maphash.MakeSeed(),
		shards: make([]shard[K], min((c.MaxKeys+perShard-1)/perShard, maxShards)), seats: map[string]struct{}{},
	}
	open := Config{Initial: ForcedClosed, FailureRate: Off, Classify: c.Breaker.Classify, Active: c.Breaker.Active}
	g.unguarded = newMember(name, &hold{label: otherKey, rules: newRules(open.orDefault())}, t0)
	g.other = newSums(name, g.unguarded)
	g.own = newGroupSeries(name, t0)
	for i := range g.shards {
		s := &g.shards[i]
		s.max = (c.MaxKeys + i) / len(g.shards)
		s.byKey = map[K]*member[K]{}
		s.census.Store(&[]*member[K]{})
		none := g.other.none()
		s.gone.Store(&none)
	}
	return g
}

// Get returns the breaker of the key.
func (g *Group[K]) Get(key K) *Breaker {
	s := g.shard(key)
	b, known := s.find(key)
	if b != nil {
		return b
	}
	return g.admit(s, key, known, time.Now())
}

// GetAt is Get at the time t. A breaker that it makes begins at t and lives on the times
// given to its At verbs.
func (g *Group[K]) GetAt(t time.Time, key K) *Breaker {
	s := g.shard(key)
	b, known := s.find(key)
	if b != nil {
		return b
	}
	return g.admit(s, key, known, t)
}

// All yields the keys and their breakers, in no particular order: the members, and
// those that were let go and somebody has still. Keys that come while it goes on may be
// missing. It takes no lock, so the group may be used meanwhile.
func (g *Group[K]) All() iter.Seq2[K, *Breaker] {
	return func(yield func(K, *Breaker) bool) {
		for m := range g.members {
			if b := m.alive(); b != nil && !yield(m.key, b) {
				return
			}
		}
	}
}

// Len returns the number of members, GroupConfig.MaxKeys at most.
func (g *Group[K]) Len() int { return int(g.placed.Load()) }

// Name returns the group's name.
func (g *Group[K]) Name() string { return g.name }

// GroupStats are what a group has been through, as plain numbers.
type GroupStats struct {
	Members   int   // as Len returns
	Evictions int64 // members that were let go to make room
	Unguarded int64 // times that Get found no room, and returned the breaker that lets all pass
}

// Stats returns what the group has been through so far.
func (g *Group[K]) Stats() GroupStats {
	return GroupStats{Members: g.Len(), Evictions: g.evictions.Load(), Unguarded: g.passed.Load()}
}

func (g *Group[K]) shard(key K) *shard[K] {
	return &g.shards[maphash.Comparable(g.hash, key)%uint64(len(g.shards))]
}

// admit is for keys whose breaker is not kept. It renders the key, which may call a
// method of its, outside all locks.
func (g *Group[K]) admit(s *shard[K], key K, known bool, t time.Time) *Breaker {
	full := !known && int64(t.Sub(g.epoch)) < s.fullUntil.Load()
	if !full && key == key { //nolint:gocritic // a NaN is not, and would never be found again
		if b := s.admit(g, key, strings.ToValidUTF8(fmt.Sprint(key), "\uFFFD"), t); b != nil {
			return b
		}
	}
	g.passed.Add(1)
	return g.unguarded
}

// members yields the members that were not dropped.
func (g *Group[K]) members(yield func(*member[K]) bool) {
	for i := range g.shards {
		for _, m := range *g.shards[i].census.Load() {
			if !m.dropped.Load() && !yield(m) {
				return
			}
		}
	}
}

// seat gives the key of a new member series of its own if there are any left and no
// other key has the same words.
func (g *Group[K]) seat(label string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	_, taken := g.seats[label]
	if taken || len(g.seats) >= g.config.MaxSeries || label == otherKey || label == "" {
		return false
	}
	g.seats[label] = struct{}{}
	return true
}
