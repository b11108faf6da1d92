package weir

import (
	"errors"
	"fmt"
	"iter"
	"math"
	"sync"
	"time"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/internal/bridge"
	"github.com/weir-go/weir/internal/keytext"
	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/stat"
)

// GroupConfig configures a [Group]. The zero value is ready to use.
type GroupConfig struct {
	// Gate is the config of each key's gate. Group.Reconfigure replaces it. Default that of Config.
	Gate Config
	// MaxKeys is the most keys that the group has. As many token buckets, and as many holds
	// (Gate.Hold), are kept besides. A key takes about 3 KB: see breaker.GroupConfig.
	// Default 10,000.
	MaxKeys int
	// MaxSeries is how many keys have series of their own in metrics, up to half of MaxKeys: see
	// breaker.GroupConfig. breaker.Off gives no key its own. Default 100, or half of MaxKeys where
	// that is less.
	MaxSeries int
}

// Validate returns an error that names every field that is out of bounds, or nil if there is none.
func (c GroupConfig) Validate() error {
	gate := c.Gate.Validate()
	if gate != nil {
		gate = fmt.Errorf("weir: Gate: %w", gate)
	}
	c.Gate.Breaker = breaker.Config{} // its faults are named already
	return errors.Join(gate, c.breakers().Validate())
}

func (c GroupConfig) breakers() breaker.GroupConfig {
	return breaker.GroupConfig{Breaker: c.Gate.Breaker, MaxKeys: c.MaxKeys, MaxSeries: c.MaxSeries}
}

// Group has one gate per key, such as a host, a tenant or a shard, in bounded memory.
//
//	var hosts = weir.NewGroup[string]("hosts", weir.GroupConfig{Gate: weir.Config{Rate: limiter.PerSecond(100)}})
//
//	err := hosts.Get(req.URL.Host).Run(ctx, send)
//
// A Group has at most GroupConfig.MaxKeys keys. A key takes no memory until Get is first called for
// it. When the group is full, a new key takes the place of an idle one: one whose breaker a new one
// would replace without any difference, see [breaker.Group]. Its token bucket is forgotten by itself,
// when it is full again, see [limiter.Group]. A Group starts no goroutine and no timer.
//
// A gate may be kept for any time: it leads to what its key has now.
//
// If no key is idle, a new key passes unguarded: no breaker refuses its calls, and it shares one token
// bucket with all other keys that have none. Call Get for each call, so that the key gets its own gate
// when there is room.
//
// All methods may be called from any number of goroutines.
type Group[K comparable] struct {
	name     string
	epoch    time.Time
	breakers *breaker.Group[K]
	buckets  *limiter.Group[K] // nil for no limit
	admitted admissions
	holds    holds[K] // keys whose services have asked to wait

	mu sync.Mutex // held to reconfigure
}

// NewGroup returns a group without keys. The name appears in errors and metrics.
// NewGroup panics with the error of c.Validate if there is one.
func NewGroup[K comparable](name string, c GroupConfig) *Group[K] {
	if err := c.Validate(); err != nil {
		panic(err)
	}
	g := &Group[K]{
		name: name, epoch: time.Now(),
		breakers: breaker.NewGroup[K](name, c.breakers()),
		holds:    holds[K]{max: either(c.MaxKeys, defaultKeys)},
	}
	g.admitted.setMaxWait(c.Gate.MaxWait)
	if r := c.Gate.Rate; r != (limiter.Rate{}) {
		g.buckets = limiter.NewGroup(limiter.GroupConfig[K]{
			Rate: r, Burst: c.Gate.Burst, MaxKeys: either(c.MaxKeys, defaultKeys), Overflow: limiter.ShareNew,
		})
	}
	return g
}

const defaultKeys = 10_000

func either(n, zero int) int {
	if n == 0 {
		return zero
	}
	return n
}

// keyed is a gate of a group with what its limiter is.
type keyed[K comparable] struct {
	Gate
	bucket limiter.Keyed[K]
	hold   hold[K]
}

// Get returns the gate of the key. It allocates nothing for a key that has one. Get waits at most for
// a new key's search for room, as [breaker.Group.Get] does.
func (g *Group[K]) Get(key K) *Gate { return g.gateOf(key, g.breakers.Get(key)) }

// gateOf returns the gate of a key that has this breaker. It is kept with the breaker; one of a key
// without room is made for each call.
func (g *Group[K]) gateOf(key K, b *breaker.Breaker) *Gate {
	place := hooks.Attached(b)
	if place == nil {
		return g.newGate(keytext.Bounded(key), b)
	}
	if gate, ok := place.Load().(*Gate); ok {
		return gate
	}
	gate := g.newGate(keytext.Own(key), b)
	if !place.CompareAndSwap(nil, gate) {
		gate, _ = place.Load().(*Gate) // of another caller, which came first
	}
	return gate
}

func (g *Group[K]) newGate(key K, b *breaker.Breaker) *Gate {
	k := &keyed[K]{Gate: Gate{
		name: g.name, epoch: g.epoch, breaker: b, admitted: &g.admitted, held: &g.holds.latest,
	}, hold: hold[K]{table: &g.holds, key: key}}
	k.Gate.hold = &k.hold
	k.bare = g.buckets == nil
	if g.buckets != nil {
		k.bucket = g.buckets.Get(key)
		k.limiter, k.timed = &k.bucket, &k.bucket
	}
	return &k.Gate
}

// Len returns the number of keys, at most GroupConfig.MaxKeys.
func (g *Group[K]) Len() int { return g.breakers.Len() }

// All yields the keys and their gates, in no particular order. Keys that are added meanwhile may be
// missing. No lock is held while the loop body runs, so it may use the group.
func (g *Group[K]) All() iter.Seq2[K, *Gate] {
	return func(yield func(K, *Gate) bool) {
		for key, b := range g.breakers.All() {
			if !yield(key, g.gateOf(key, b)) {
				return
			}
		}
	}
}

// Reconfigure changes the config of all keys, of those added later too. A breaker keeps its state and
// its calls, see [breaker.Breaker.Reconfigure], and a token bucket its tokens, see
// [limiter.TokenBucket.SetRate]. MaxWait is for calls that begin to wait afterwards. A group with a
// Rate keeps one, which may be limiter.Unlimited(), and a group without keeps none. If c is not valid,
// or adds or removes the Rate, Reconfigure returns an error and changes nothing.
func (g *Group[K]) Reconfigure(c Config) error {
	if err := c.Validate(); err != nil {
		return err
	}
	if (c.Rate == limiter.Rate{}) != (g.buckets == nil) {
		return fmt.Errorf("weir: Rate is %v, must be given where NewGroup was given one, and only there", c.Rate)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.buckets != nil {
		if err := g.buckets.SetDefaultTier(limiter.Tier{Rate: c.Rate, Burst: c.Burst}); err != nil {
			return err
		}
	}
	g.admitted.setMaxWait(c.MaxWait)
	return g.breakers.Reconfigure(c.Breaker)
}

// Forget removes the key, whatever the state of its gate, and reports whether the group had it. The
// next call of the key starts with a new breaker, a full token bucket and no hold. Forget is meant for
// keys that are gone for good, such as a host that was shut down.
func (g *Group[K]) Forget(key K) bool {
	known := g.breakers.Forget(key)
	key = keytext.Bounded(key)
	g.holds.forget(key)
	if g.buckets != nil && g.buckets.Forget(key) {
		known = true
	}
	return known
}

// Admissions returns how many calls of all keys their limits have allowed and refused: see
// [Gate.Admissions].
func (g *Group[K]) Admissions() limiter.Stats { return g.admitted.load() }

// Histograms yields how long the calls took, by key: see [breaker.Group.Histograms]; and
// how long those of all keys waited, if Config.MaxWait is set.
func (g *Group[K]) Histograms(yield func(*stat.Series, stat.Histogram) bool) {
	for s, h := range g.breakers.Histograms {
		if !yield(s, h) {
			return
		}
	}
	g.admitted.histograms(g.name, g.epoch, yield)
}

// Observe yields the figures of the breakers, by key as [breaker.Group.Observe] does,
// and of the limiters of all keys together.
func (g *Group[K]) Observe(yield func(*stat.Series, float64) bool) {
	for s, v := range g.breakers.Observe {
		if !yield(s, v) {
			return
		}
	}
	if g.buckets == nil {
		g.admitted.observeHeld(g.name, g.epoch, yield)
		return
	}
	lines := g.admitted.lines(g.name, g.epoch)
	evictions, limit, period := bridge.GroupFigures(g.buckets)
	if !g.admitted.observe(lines, yield) || !yield(lines.keys, float64(g.buckets.Len())) ||
		!yield(lines.evictions, float64(evictions)) {
		return
	}
	if limit < math.MaxInt && yield(lines.limit, float64(limit)) {
		yield(lines.period, period.Seconds())
	}
}
