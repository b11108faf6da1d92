package limiter

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"iter"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/internal/busy"
	"github.com/weir-go/weir/internal/clock"
	"github.com/weir-go/weir/internal/friend"
	"github.com/weir-go/weir/internal/sentinel"
	"github.com/weir-go/weir/internal/settings"
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
	named
	busiest    *busy.Sketch[K] // nil if the group has no name
	epoch      time.Time
	tierOf     func(K) int
	clones     bool // keys are Cloners
	seed       maphash.Seed
	shareNew   bool
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
	set   settings.Version         // of first
	// by tier, the bucket of all keys without room, if shareNew
	shared []*TokenBucket
}

// NewGroup returns a group without keys. It panics with the error of c.Validate if c is invalid.
func NewGroup[K comparable](c GroupConfig[K]) *Group[K] { return newGroup(c, time.Now()) }

func newGroup[K comparable](c GroupConfig[K], t0 time.Time) *Group[K] {
	mustBeValid(c.Validate())
	c = c.withDefaults()
	tiers := c.allTiers()
	g := &Group[K]{
		epoch: t0, tierOf: c.TierOf, seed: maphash.MakeSeed(), shareNew: c.ShareNew, maxKeys: int64(c.MaxKeys), maxWaiters: c.MaxWaiters,
		shards: make([]shard[K], min(64, (c.MaxKeys+127)/128)), tiers: make([]atomic.Pointer[limits], len(tiers)),
	}
	var key K
	_, g.clones = any(key).(friend.Cloner[K])
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
		if c.ShareNew {
			b := newTokenBucket(TokenBucketConfig{Rate: t.Rate, Burst: t.Burst, MaxWaiters: c.MaxWaiters}, t0)
			b.queue.keepStatistics(g.statistics)
			g.shared = append(g.shared, b)
		}
	}
	for i := range g.shards {
		s := &g.shards[i]
		s.latest = firstPosition
		s.tiers = make([]tierTable[K], len(tiers))
		for j := range s.tiers {
			s.tiers[j] = tierTable[K]{limits: g.tiers[j].Load(), buckets: noBuckets[K](), noRefundBefore: firstPosition}
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
	if own := s.holds.Find(p.hash, p.key); own != nil {
		s.holds.Remove(own)
		g.holdCount.Add(-1)
		known = true
	}
	at := clampTime(time.Since(g.epoch))
	for i := range s.tiers {
		s.tiers[i].noRefundBefore = max(s.tiers[i].noRefundBefore, at+1)
		if b := s.tiers[i].buckets.Find(p.hash, p.key); b != nil {
			s.tiers[i].buckets.Remove(b)
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
		!yield(g.count.series().Keys, float64(g.Len())) || !yield(g.count.series().Evictions, float64(g.evictions())) ||
		!yield(g.count.series().NoRoom(), float64(g.noRoom.Load())) {
		return
	}
	if tokens, period := g.limit(); tokens < math.MaxInt && yield(g.count.series().Limit, float64(tokens)) {
		yield(g.count.series().Period, period.Seconds())
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

// GroupConfig configures a [Group].
type GroupConfig[K comparable] struct {
	// Rate is the rate at which tokens are added for each key. Required.
	Rate Rate
	// Burst is the maximum number of tokens of a key, up to 2^40. Off refuses all requests. Default
	// the tokens of one second at the Rate, at least 1.
	Burst int
	// MaxKeys is the maximum number of keys that are remembered, and the most keys that can be
	// held. Keys that come back for a debt exceed it (see [Reservation.Settle]). Default 100,000.
	MaxKeys int
	// ShareNew gives all new keys of a tier one token bucket that they share, while all remembered
	// keys are in use. Otherwise requests of a new key are refused until another key is idle,
	// including those that would wait, and their RetryAfter is an estimate. Default false.
	ShareNew bool
	// MaxWaiters is the maximum number of callers that may wait for one key at once. Further
	// callers are refused. Default no bound.
	MaxWaiters int
	// Tiers are the limits of keys that do not have the limits above. Default no tiers.
	Tiers []Tier
	// TierOf returns the index in Tiers of the tier of a key. A negative index means the limits
	// above, and a too large index means the last tier. TierOf is called once per decision. It must
	// be fast and safe for concurrent use. A key whose tier changes is a new key in the new tier.
	// Its bucket in the old tier stays until it is full, so a key that changes back finds it again.
	// Required with Tiers, and not allowed without.
	TierOf func(key K) int
	// Name appears in errors and metrics. A group with a name keeps statistics, summed over all
	// keys, and is a [stat.Source]. No key becomes a label of a metric. Default no name and no
	// statistics.
	Name string
	// Shadow allows all requests and counts those that would have been refused. Requires a Name.
	// Default false.
	Shadow bool
	// ShowKeys makes Busiest return the keys themselves, which may be personal data or secrets, and
	// keeps their texts. Otherwise it returns hashes of them. Requires a Name. Default false.
	ShowKeys bool
}

// Tier is the limits of some keys of a [Group].
type Tier struct {
	// Rate is the rate at which tokens are added for each key. Required.
	Rate Rate
	// Burst is the maximum number of tokens of a key, up to 2^40. Off refuses all requests. Default
	// the tokens of one second at the Rate, at least 1.
	Burst int
}

func (t Tier) validate() error { return TokenBucketConfig{Rate: t.Rate, Burst: t.Burst}.Validate() }

// Validate returns an error that names every invalid field, or nil.
func (c GroupConfig[K]) Validate() error {
	faults := []error{Tier{Rate: c.Rate, Burst: c.Burst}.validate()}
	for i, t := range c.Tiers {
		if err := t.validate(); err != nil {
			faults = append(faults, fmt.Errorf("tier %d: %w", i, err))
		}
	}
	if (c.TierOf == nil) != (len(c.Tiers) == 0) {
		faults = append(faults, fmt.Errorf("limiter: Tiers has length %d and TierOf is set: %t, must have both or neither", len(c.Tiers), c.TierOf != nil))
	}
	if c.MaxKeys < 0 {
		faults = append(faults, fmt.Errorf("limiter: MaxKeys is %d, must be at least 1 (or 0 for the default)", c.MaxKeys))
	}
	if c.ShowKeys && c.Name == "" {
		faults = append(faults, errors.New("limiter: ShowKeys is set without a Name, must have both"))
	}
	return errors.Join(append(faults, validateCommon(c.MaxWaiters, c.Name, c.Shadow))...)
}

const defaultMaxKeys = 100_000

func (c GroupConfig[K]) withDefaults() GroupConfig[K] {
	c.MaxKeys = cmp.Or(c.MaxKeys, defaultMaxKeys)
	return c
}

// allTiers returns the limits of the group itself, followed by Tiers.
func (c GroupConfig[K]) allTiers() []Tier {
	return append([]Tier{{Rate: c.Rate, Burst: c.Burst}}, c.Tiers...)
}

// Keyed is the limiter of one key of a [Group], from [Group.Get]. It is a small value without
// state: all values of one key are the same limiter. The zero value is not usable.
//
// All methods are safe for concurrent use. Only Wait blocks.
type Keyed[K comparable] struct {
	group *Group[K]
	key   K
}

// Take takes n tokens of the key, or none if there are fewer. In shadow mode the result is always
// OK, with the numbers of the refusal if no tokens were taken.
func (k Keyed[K]) Take(n int) (r Result) {
	k.group.take(&r, nil, time.Since(k.group.epoch), clock.ReadTolerance, k.key, n)
	if k.group.statistics == nil {
		return r // without a copy of it
	}
	return k.record(r, n)
}

// TakeAt is Take at the time t.
func (k Keyed[K]) TakeAt(t time.Time, n int) (r Result) {
	k.group.take(&r, nil, t.Sub(k.group.epoch), clock.GivenTolerance, k.key, n)
	return k.record(r, n)
}

// Wait takes n tokens of the key as soon as there are that many. See [TokenBucket.Wait]. Each key
// has a queue of its own. If there is no room for the key and ShareNew is not set, Wait is
// refused at once.
func (k Keyed[K]) Wait(ctx context.Context, n int) error { return wait(ctx, k, n) }

func (k Keyed[K]) waitTaken(ctx context.Context, n int, maxWait time.Duration, w *waiter) (taken, error) {
	t, err := k.group.wait(ctx, k.key, n, maxWait, w)
	if n != 0 && errors.Is(err, sentinel.ErrRefused) {
		k.group.busiest.Add(k.key)
	}
	return t, err
}

// Hold refuses all requests of the key for d: see [TokenBucket.Hold]. It needs no room for the key,
// and applies in every tier. A caller that waits already although the key has no room is not held.
// While MaxKeys keys are held, no further key can be held, and the metric weir.limiter.no_room
// counts the attempt.
func (k Keyed[K]) Hold(d time.Duration) { k.group.holdAt(time.Since(k.group.epoch), k.key, d) }

func (k Keyed[K]) peek(t time.Time, ahead int64, n int) (r Result) {
	k.group.peek(&r, t.Sub(k.group.epoch), k.key, ahead, n)
	return r
}

func (k Keyed[K]) tryTake(t time.Time, n int, _ counting) (r Result, back taken) {
	k.group.take(&r, &back, t.Sub(k.group.epoch), clock.ReadTolerance, k.key, n)
	return r, back
}

func (k Keyed[K]) record(r Result, n int) Result {
	if !r.OK && n != 0 {
		k.group.busiest.Add(k.key)
	}
	return k.group.record(r, n)
}

func (k Keyed[K]) restartIfNew(t time.Time, tolerance time.Duration) bool {
	g, at := k.group, t.Sub(k.group.epoch)
	var p keyPosition[K]
	g.locate(&p, k.key)
	p.shard.mu.Lock()
	latest := p.shard.latest
	p.shard.mu.Unlock()
	isNew := clock.IsNew(g.epoch, at, latest, tolerance)
	if isNew {
		g.restart(at)
	}
	return isNew
}

func (k Keyed[K]) isShadow() bool { return k.group.isShadow() }

func (k Keyed[K]) putBack(now time.Time, back taken, n int) taken {
	return k.group.putBack(now, k.key, back, n)
}

func (k Keyed[K]) charge(now time.Time, back taken, n int) {
	if back.shared != nil {
		back.shared.charge(now, back, n)
		return
	}
	k.group.charge(now.Sub(k.group.epoch), k.key, n, true)
}

func (k Keyed[K]) refusedByJoint(_ time.Time, n int, r Result, _ bool) {
	k.group.recordRefusal(r, n)
	if !r.OK && n != 0 && !k.isShadow() {
		k.group.busiest.Add(k.key)
	}
}

func (k Keyed[K]) maxKeys() int { return int(k.group.maxKeys) }

func (k Keyed[K]) lacksRoom(n int) bool {
	_, room := k.group.hasRoom(k.key, n)
	return !room && !k.group.shareNew
}

// subscribe keeps the queue of the key until unsubscribe.
func (k Keyed[K]) subscribe(w wakeup) {
	if k.key == k.key { //nolint:gocritic // the queue of a NaN would never be found again
		k.group.queues.acquire(k.key, k.group).subscribe(w)
	}
}

func (k Keyed[K]) unsubscribe(w wakeup) {
	if q := k.group.queues.of(k.key); q != nil {
		q.unsubscribe(w)
		k.group.queues.release(k.key, q)
	}
}
