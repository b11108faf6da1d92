package breaker

import (
	"errors"
	"fmt"
	"iter"
	"log"
	"math"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/internal/clock"
	"github.com/weir-go/weir/internal/friend"
	"github.com/weir-go/weir/internal/keyed"
	"github.com/weir-go/weir/internal/keytext"
	"github.com/weir-go/weir/stat"
	"github.com/weir-go/weir/window"
)

// A group is a bounded table of members, one per key. It evicts a member only if a new breaker
// would decide as the breaker of the member does, and no call of it is in flight (member.go).

// Group has one breaker per key, such as a host, a tenant or a shard, in bounded memory.
//
//	var hosts = breaker.NewGroup[string]("hosts", breaker.GroupConfig{})
//
//	err := hosts.Get(req.URL.Host).Run(ctx, send)
//
// A Group has at most GroupConfig.MaxKeys keys. A key takes no memory until Get is first called for
// it. When the group is full, a new key replaces an idle key. A key is idle if a new breaker would
// decide as its breaker does: the breaker is closed and has no calls in its window. In addition,
// no call of the key is in flight, unless Get was not called for it in an hour, and Get was not
// called since the group last checked. A Group starts no goroutine and no timer.
//
// Call Get for each call. A breaker that is kept for longer may no longer be in the group, because
// its key was evicted or forgotten. It still works, but alone: the key gets a new breaker, and the
// group neither observes nor overrides the old one.
//
// If no key is idle, a new key is unguarded: it gets a breaker that all such keys share. This
// breaker is forced closed, or forced open if Config.Force is ForcedOpen, and cannot be forced,
// reset or reconfigured. The metric weir.breaker.group.unguarded counts these calls of Get.
//
// All methods may be called from any number of goroutines. Get blocks only while room is searched
// for a new key, which takes some microseconds, or a fraction of a millisecond if most keys must be
// looked at. A key with calls in its window is looked at again when they have left it, or after 10
// seconds, so room that Reset makes may be found that late. Keys are compared as a whole, except
// for long keys: see GroupConfig.MaxKeys. A key that is not equal to itself, such as NaN, is
// unguarded. The zero value does not work: use NewGroup.
type Group[K comparable] struct {
	name      string
	maxKeys   int
	maxSeries int // 0 for Off
	rules     atomic.Pointer[rules]
	gates     friend.GateMaker[K, Breaker] // of a group of gates; otherwise nil
	epoch     time.Time
	members   *keyed.Table[K, member[K], *member[K]]
	unguarded *Breaker

	unguardedCalls atomic.Int64              // calls of Get that found no room
	saidFull       atomic.Pointer[time.Time] // when that was last logged
	places         openPlaces
	override       groupOverride
	series         [4]*stat.Series
	observers      groupObservers
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
		name: name, maxKeys: c.MaxKeys, maxSeries: c.MaxSeries, epoch: t0, series: newGroupSeries(name, t0),
		members: keyed.New[K, member[K]](c.MaxKeys, t0),
	}
	g.rules.Store(newRules(c.Breaker.orDefault()))
	g.places.members = g.members.Count()
	g.places.setShare(c.MaxOpen)
	without := unguardedMember[K]{g}
	g.unguarded = build(name, without.rules(), t0, &membership{label: otherKey, group: without, unguarded: true})
	g.observers.init(name, t0, c.MaxSeries, g.members.Shards())
	return g
}

// unguardedRules returns the rules of the breaker for keys without room. It counts calls as members
// do, and never opens.
func unguardedRules(c Config) *rules {
	u := Config{
		Force: ForcedClosed, FailureRate: Off, Classify: c.Classify, SlowCall: c.SlowCall, Latency: c.Latency,
		CooldownJitter: c.CooldownJitter, // the jitter of holds
	}
	if c.Force == ForcedOpen {
		u.Force, u.ForceReason = c.Force, c.ForceReason
	}
	if c.SlowCall > 0 {
		u.SlowRate = Off
	}
	return newRules(u.orDefault())
}

// Get returns the breaker of the key. It allocates no memory for a key that has one.
func (g *Group[K]) Get(key K) *Breaker {
	if m := g.members.Get(key); m != nil {
		return m.breaker
	}
	return g.add(key, time.Now())
}

// getAt is Get at the time t. A new breaker begins at t.
func (g *Group[K]) getAt(t time.Time, key K) *Breaker {
	if m := g.members.Get(key); m != nil {
		return m.breaker
	}
	return g.add(key, t)
}

// Reconfigure replaces c.Breaker for all keys, including keys added later, and any Config that
// [Breaker.Reconfigure] has set. Breakers keep their states and calls as described there.
// Reconfigure also replaces c.MaxOpen: if more keys are open than the new share allows, they stay
// open, and no other key opens until enough of them have closed. If c is not valid, or differs in
// MaxKeys or MaxSeries, Reconfigure returns an error and changes nothing.
func (g *Group[K]) Reconfigure(c GroupConfig) error { return g.reconfigureAt(time.Now(), c) }

// reconfigureAt is Reconfigure at the time t.
func (g *Group[K]) reconfigureAt(t time.Time, c GroupConfig) error {
	if err := c.Validate(); err != nil {
		return err
	}
	if !g.canBecome(c) {
		return errors.New("breaker: Reconfigure can change Breaker and MaxOpen; MaxKeys and MaxSeries must be as before")
	}
	g.places.setShare(c.MaxOpen)
	// set first, so that all members with the old rules are in the lists below
	g.rules.Store(newRules(c.Breaker.orDefault()))
	g.unguarded.setGroupRules(t)
	for _, b := range g.All() {
		b.setGroupRules(t)
	}
	return nil
}

// canBecome reports whether a valid config has the MaxKeys and the MaxSeries of the group.
func (g *Group[K]) canBecome(c GroupConfig) bool {
	c = c.orDefault()
	return c.MaxKeys == g.maxKeys && c.MaxSeries == g.maxSeries
}

// All yields the keys and their breakers, in no particular order. Keys that are added meanwhile may
// be missing. No lock is held while the loop body runs, so it may use the group.
func (g *Group[K]) All() iter.Seq2[K, *Breaker] {
	return func(yield func(K, *Breaker) bool) {
		for key, m := range g.members.All() {
			if !yield(key, m.breaker) {
				return
			}
		}
	}
}

// Len returns the number of keys, at most GroupConfig.MaxKeys.
func (g *Group[K]) Len() int { return g.members.Len() }

// Forget removes the key, whatever the state of its breaker, and reports whether the group had it.
// The next call of the key starts with a new breaker, and the series of the key end. Calls in
// flight end with the old breaker. Use Forget for a key that no longer exists, such as a host that
// was shut down. To close a breaker, use [Breaker.Reset].
func (g *Group[K]) Forget(key K) bool {
	key = keytext.Bounded(key)
	if m := g.members.Get(key); m != nil {
		m.breaker.peekNow() // may call OnChange, which must not happen under the lock of the table
	}
	return g.members.Forget(key) != nil
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
	if !g.members.IsFull() || last != nil && time.Since(*last).Abs() < time.Minute {
		return
	}
	if now := time.Now(); !g.saidFull.CompareAndSwap(last, &now) {
		return
	}
	log.Printf("breaker: group %q has no room for new keys, which no breaker guards: raise MaxKeys, which is %d", g.name, g.maxKeys) //nolint:forbidigo // as in change.go
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
		if m := g.members.Get(key); m != nil {
			return m.breaker
		}
	}
	if t.Sub(g.epoch) < -clock.MaxOffset { // stale for any clock, such as the zero time
		t = g.epoch
	}
	if g.members.WasFull(key, t, min(g.rules.Load().timeToEmpty()/100, longestFull)) {
		return nil
	}
	// copied, so that the parameters are not allocated for a key without room
	own, label, began := keytext.Own(key), keytext.Label(key), t
	m := g.members.Add(own, began, func(m *member[K]) { m.join(g, own, label, began) })
	if m == nil {
		return nil
	}
	return m.breaker
}

// longestFull is the longest time for which new keys do not look for room after one found none.
const longestFull = time.Second

// GroupConfig configures a [Group]. The zero value is ready to use.
type GroupConfig struct {
	// Breaker is the Config of the breaker of each key. OnChange is called for the changes of all
	// breakers, and Change.Key is the key. The changes of one breaker come one at a time and in
	// order. Changes of different breakers may come at the same time, so OnChange must be safe for
	// concurrent use. A slow call of OnChange for one key delays no other key. With Latency each
	// breaker that is used takes 5 to 36 kB more. Default the zero Config.
	Breaker Config
	// MaxKeys is the largest number of keys, at least 1. The table has parts that fill up
	// separately, so the group may be full with some per cent fewer. A key takes 1.3 kB after its
	// first call, up to 2.3 kB once there were calls in each part of the default window, and at
	// most 2 kB more for its text. A string key of more than 256 bytes is kept as its beginning and
	// a digest. A key of another type that refers to more than 1,024 bytes of text is unguarded.
	// Default 100,000.
	MaxKeys int
	// MaxSeries is the number of keys with metric series of their own, at most half of MaxKeys, or
	// Off for none. The keys that were added first have such series. All other keys share one set
	// of series with the key _other, whose weir.breaker.state says how many they are. The series of
	// a key end when the key is evicted or forgotten, and the next new key gets series. When the
	// metrics are read, an idle key with series that had no call for 10 minutes is evicted. Default
	// 100, or half of MaxKeys if that is less.
	MaxSeries int
	// MaxOpen is the largest share of the keys that may be open at once, above 0 and at most 1, so
	// that a fault of the caller itself, such as a lost network, does not open all breakers. See
	// docs/breaker.md. Default 0: no bound.
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

// openPlaces bounds how many members of a group may be open. A member takes a place before it opens
// and gives it back when it closes, so half-open and recovering members hold a place: they refuse
// most calls too, and may open again. A member that is opened by hand takes a place even if none is
// free.
type openPlaces struct {
	share     atomic.Int64  // in parts of a billion, 0 for no bound
	members   *atomic.Int64 // of the group
	taken     atomic.Int64
	prevented atomic.Int64 // openings
}

// setShare rounds up, so that two of three keys may be open with a share of 2.0/3.
func (s *openPlaces) setShare(share float64) {
	parts := int64(0)
	if share > 0 {
		parts = max(int64(math.Ceil(share*float64(wholeRate)-1e-6)), 1)
	}
	s.share.Store(parts)
}

// take takes a place if one is free. There is always a place for one member.
func (s *openPlaces) take() bool {
	for {
		taken, share := s.taken.Load(), s.share.Load()
		if share != 0 && taken > 0 && (taken+1)*int64(wholeRate) > share*s.members.Load() {
			return false
		}
		if s.taken.CompareAndSwap(taken, taken+1) {
			return true
		}
	}
}

// joinPlaces counts b among the places of its group. No other goroutine has b yet.
func (b *Breaker) joinPlaces(s *openPlaces) {
	b.places = s
	b.updatePlace(b.regime.Load())
}

// updatePlace takes a place if b refuses calls in phase p, and gives it back if b does not. The
// lock is held.
func (b *Breaker) updatePlace(p *regime) {
	refuses := p.passes == noCalls || p.passes == onlyProbes || p.passes == shareOfCalls
	if b.places == nil || refuses == b.placed {
		return
	}
	b.placed = refuses
	if refuses {
		b.places.taken.Add(1)
	} else {
		b.places.taken.Add(-1)
	}
}

// leavePlaces gives back the place of b, which leaves its group, and takes none from now on.
func (b *Breaker) leavePlaces() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.placed {
		b.places.taken.Add(-1)
	}
	b.places, b.placed = nil, false
}

// takePlace takes a place for a breaker that is about to open because of its calls, and reports
// whether it got one. The lock is held.
func (b *Breaker) takePlace() bool {
	if b.places != nil && !b.placed {
		b.placed = b.places.take()
		return b.placed
	}
	return true
}

// stayClosed reports that a breaker did not open because there is no place. It does so at most once
// per cooldown, which is how often the breaker could have opened. The lock is held.
func (b *Breaker) stayClosed(p *regime, at time.Duration, why cause, counts window.Counts) {
	at = p.latest(at)
	if at < p.prevented {
		return
	}
	p.prevented = addClamped(at, max(p.rules.config.Cooldown, time.Second))
	s := b.places
	s.prevented.Add(1)
	b.changes().push(Change{
		Name: b.name, Key: b.member.text(), At: b.date(at), From: p.state, To: p.state, origin: why.origin, Counts: counts,
		Reason: fmt.Sprintf("would open, but %d of %d keys are open, MaxOpen %.3g%%: %s",
			s.taken.Load(), s.members.Load(), float64(s.share.Load())*100/float64(wholeRate), why.reason),
	})
}
