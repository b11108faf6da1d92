package weir

import (
	"errors"
	"fmt"
	"iter"
	"math"
	"time"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/stat"
)

// GroupConfig says what the gates of a [Group] are like, and how many keys it knows.
// The zero value is sensible.
type GroupConfig struct {
	// Gate is the config of each gate. Default Config's own.
	Gate Config
	// MaxKeys is the most keys that have a breaker, the most that have a token bucket, and the
	// most that are held at the same time (Gate.Hold).
	// Default 10,000.
	MaxKeys int
	// MaxSeries is how many breakers have series of their own in metrics; see
	// breaker.GroupConfig, and breaker.Off for none. Default 100, or half of MaxKeys where that is
	// less.
	MaxSeries int
}

// Validate returns an error that names every field that is out of bounds, and nil
// where there is none.
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

// Group is a gate a key: for each host, tenant or shard, in bounded memory.
//
//	var hosts = weir.NewGroup[string]("hosts", weir.GroupConfig{Gate: weir.Config{Rate: limiter.PerSecond(100)}})
//
//	err := hosts.Get(req.URL.Host).Run(ctx, send)
//
// It is a [breaker.Group] and a [limiter.Group] in one, and what they promise holds: a
// key costs nothing until it is first asked for, has one breaker and one token bucket
// for all who ask, and is forgotten only when fresh ones would decide as they do.
//
// When the group is full of keys in use, a new key has no breaker of its own and is not
// stopped (breaker.GroupStats.Unguarded counts that), and shares one token bucket with
// all others that came too late.
//
// All methods may be called from any number of goroutines.
type Group[K comparable] struct {
	name     string
	epoch    time.Time
	maxWait  time.Duration
	breakers *breaker.Group[K]
	buckets  *limiter.Group[K] // nil for no limit
	admitted admissions
	holds    holds[K] // keys whose services have asked to wait
}

// NewGroup returns a group without keys. The name stands in errors and metrics.
// NewGroup panics with the error of c.Validate if there is one.
func NewGroup[K comparable](name string, c GroupConfig) *Group[K] {
	if err := c.Validate(); err != nil {
		panic(err)
	}
	g := &Group[K]{
		name: name, epoch: time.Now(), maxWait: c.Gate.MaxWait,
		breakers: breaker.NewGroup[K](name, c.breakers()),
		holds:    holds[K]{max: either(c.MaxKeys, defaultKeys)},
	}
	g.admitted.waits = timesOf(c.Gate.MaxWait)
	if r := c.Gate.Rate; !r.IsZero() {
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

// Get returns the gate of the key. It is a small thing that leads to the key's breaker
// and bucket: whoever asks gets one of their own, all of one key are as one, and one
// that is kept stays right, unless it was unguarded. Get waits at most for a new key's
// search for room, as [breaker.Group.Get] does.
func (g *Group[K]) Get(key K) *Gate {
	k := &keyed[K]{Gate: Gate{
		name: g.name, epoch: g.epoch, maxWait: g.maxWait, breaker: g.breakers.Get(key), admitted: &g.admitted, held: &g.holds.latest,
	}, hold: hold[K]{table: &g.holds, key: key}}
	k.Gate.hold = &k.hold
	if g.buckets != nil {
		k.bucket = g.buckets.Get(key)
		k.limiter, k.timed = &k.bucket, &k.bucket
	}
	return &k.Gate
}

// All yields the keys that have breakers, and these, in no particular order: see
// [breaker.Group.All].
func (g *Group[K]) All() iter.Seq2[K, *breaker.Breaker] { return g.breakers.All() }

// ReconfigureBreakers gives the breakers of all keys another config, those that come later
// included: see [breaker.Group.Reconfigure].
func (g *Group[K]) ReconfigureBreakers(c breaker.Config) error { return g.breakers.Reconfigure(c) }

// Len returns the number of keys that have a breaker, GroupConfig.MaxKeys at most.
func (g *Group[K]) Len() int { return g.breakers.Len() }

// Admissions returns what became of the calls of all keys at their limiters; zeros
// where there are none.
func (g *Group[K]) Admissions() Admissions { return g.admitted.load() }

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
	if !g.admitted.observe(lines, yield) || !yield(lines.keys, float64(g.buckets.Len())) ||
		!yield(lines.evictions, float64(g.buckets.Evictions())) {
		return
	}
	if limit := g.buckets.Limit(); limit < math.MaxInt && yield(lines.limit, float64(limit)) {
		yield(lines.period, g.buckets.Period().Seconds())
	}
}
