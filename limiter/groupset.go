package limiter

import (
	"errors"
	"iter"
	"math"
	"time"

	"github.com/weir-go/weir/stat"
)

// All yields the keys that are remembered, those in use among them, and their limiters, in no particular order. Keys that
// are added meanwhile may be missing. No lock is held while the loop body runs.
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

// Len returns the number of keys that are remembered: those in use, and idle ones that have not been forgotten yet.
func (g *Group[K]) Len() int { return int(g.keys.Load()) }

// Forget makes the key a new one, with a full bucket and without a hold. It reports whether the key was remembered or held.
func (g *Group[K]) Forget(key K) bool {
	var p place[K]
	g.place(&p, key)
	known := g.forget(&p)
	if q := g.lines.of(key); q != nil {
		q.poke()
	}
	return known
}

func (g *Group[K]) forget(p *place[K]) (known bool) {
	s := p.shard
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, known = s.holds[p.key]; known {
		delete(s.holds, p.key)
		g.held.Add(-1)
	}
	for i := range s.classes {
		if s.classes[i].table.remove(p.hash, p.key) {
			g.keys.Add(-1)
			known = true
		}
	}
	return known
}

// Reconfigure changes the limits of all keys, Rate, Burst and Tiers, and Named.Shadow. Tokens and holds stay as they do with
// [TokenBucket.SetRate] and [TokenBucket.SetBurst], and statistics stay too. An error says that c makes no sense, or that it differs in another field, and then nothing changes. TierOf stays as it is.
func (g *Group[K]) Reconfigure(c GroupConfig[K]) error { return g.reconfigure(time.Since(g.epoch), c) }

func (g *Group[K]) reconfigure(at time.Duration, c GroupConfig[K]) error {
	if err := c.Validate(); err != nil {
		return err
	}
	if c.MaxKeys == 0 {
		c.MaxKeys = defaultMaxKeys
	}
	if len(c.Tiers) != len(g.tiers)-1 || int64(c.MaxKeys) != g.maxKeys || c.Overflow != g.overflow ||
		c.MaxWaiters != g.maxWaiters || !g.sameAs(c.Name, c.Named) {
		return errors.New("limiter: Reconfigure changes Rate, Burst, Tiers and Named.Shadow; all else, and the number of Tiers, must be as before")
	}
	if g.statistics != nil {
		g.shadow.Store(c.Named.Shadow)
	}
	for i, t := range append([]Tier{{Rate: c.Rate, Burst: c.Burst}}, c.Tiers...) {
		g.setTier(at, i, t)
	}
	return nil
}

// SetDefaultTier changes the limits of all keys that are in none of the tiers. Their tokens and holds stay as they do with
// [TokenBucket.SetRate] and [TokenBucket.SetBurst]. An error says that the limits make no sense, and then nothing changes.
func (g *Group[K]) SetDefaultTier(t Tier) error {
	if err := t.validate(); err != nil {
		return err
	}
	g.setTier(time.Since(g.epoch), 0, t)
	return nil
}

func (t Tier) validate() error { return TokenBucketConfig{Rate: t.Rate, Burst: t.Burst}.Validate() }

// setTier changes valid limits, of which the first are the group's own.
func (g *Group[K]) setTier(at time.Duration, i int, t Tier) {
	g.mu.Lock()
	defer g.mu.Unlock()
	by := newLimits(t.Rate, t.Burst)
	for j := range g.shards {
		s := &g.shards[j]
		s.mu.Lock()
		s.change(i, &by, at)
		s.mu.Unlock()
	}
	g.tiers[i].Store(&by)
	if g.spare != nil {
		g.spare[i].change(at, func(*terms) *terms { return newTerms(t.Rate, t.Burst) })
	}
	g.lines.pokeAll()
}

// evictions is how many idle keys have been forgotten.
func (g *Group[K]) evictions() (keys int64) {
	for i := range g.shards {
		s := &g.shards[i]
		s.mu.Lock()
		keys += s.evictions
		s.mu.Unlock()
	}
	return keys
}

// limit is the most tokens of a key that is in none of the tiers, and the time in which its bucket becomes full.
func (g *Group[K]) limit() (tokens int, period time.Duration) {
	by := g.tiers[0].Load()
	return by.burst, by.period()
}

// Observe yields the statistics, and nothing without a name: see [stat.Source]. It takes the locks of the group's parts one
// after the other, for a moment each.
func (g *Group[K]) Observe(yield func(*stat.Series, float64) bool) {
	if g.statistics == nil || !g.observe(yield) ||
		!yield(g.series.keys, float64(g.Len())) || !yield(g.series.evictions, float64(g.evictions())) {
		return
	}
	if tokens, period := g.limit(); tokens < math.MaxInt && yield(g.series.limit, float64(tokens)) {
		yield(g.series.period, period.Seconds())
	}
}
