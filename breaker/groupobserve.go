package breaker

import (
	"time"

	"github.com/weir-go/weir/internal/instrument"
	"github.com/weir-go/weir/stat"
)

// otherKey is the key of the series that all keys without series of their own share.
const otherKey = "_other"

// observerState is the state of a group that only its observers use.
type observerState[K comparable] struct {
	name   string
	others summableSeries
	own    map[string]*ownSeries[K] // by the text of the key
	// correction of _other: plus what it showed of members before they got their present own
	// series, minus what only ended series showed
	moved   sum
	highest sum          // the highest counters of _other that were shown
	members []*member[K] // reused by collect
}

func (w *observerState[K]) init(name string, t0 time.Time) {
	w.name, w.others, w.own = name, newSummableSeries(name, otherKey, t0), map[string]*ownSeries[K]{}
	w.moved, w.highest = w.others.emptySum(), w.others.emptySum()
}

// Observe yields the metrics of the group, and for each key the metrics of [Breaker.Observe]. The
// key is the attribute weir.group.key.
//
// Up to GroupConfig.MaxSeries keys have series of their own. All other keys share the series with
// the key _other: its counters are sums, which include evicted keys and unguarded calls, and
// weir.breaker.state is the number of keys in each state. It has no other gauges. Keys with an
// empty text, and keys with the same text as another key, belong to _other too.
//
// The number of series is bounded. The time that Observe takes grows with the number of keys.
// Observe blocks new keys only while it copies a part of the keys.
func (g *Group[K]) Observe(yield func(*stat.Series, float64) bool) {
	own, others := g.collect((*summableSeries).add)
	for _, s := range own {
		if !s.observe(yield) {
			return
		}
	}
	for i, s := range g.observers.others.order {
		if !yield(s, others.values[i]) {
			return
		}
	}
	for i, n := range [4]int64{g.members.Load(), g.evictions.Load(), g.unguardedCalls.Load(), g.places.prevented.Load()} {
		if !yield(g.series[i], float64(n)) {
			return
		}
	}
}

// Histograms yields the durations of the calls, if Config.Latency is set: one histogram for each
// key with series of its own, and one with the key _other for all other keys together. The
// histogram of _other has no exemplars.
func (g *Group[K]) Histograms(yield func(*stat.Series, stat.Histogram) bool) {
	if !g.rules.Load().config.Latency {
		return
	}
	own, others := g.collect((*summableSeries).addLatency)
	for _, s := range own {
		h := s.latency().Histogram()
		h.Exemplars = s.member.breaker.keptExemplars()
		if !yield(s.series.duration, h) {
			return
		}
	}
	yield(g.observers.others.duration, others.durations().Histogram())
}

// collect returns the series of the keys that have series of their own, and the sum of all other
// breakers. The function add adds one breaker to that sum.
//
// For each shard the members and the sum of the evicted members are copied under its lock, so each
// call is in exactly one of them. A member that is evicted after the copy keeps its counts.
func (g *Group[K]) collect(add func(*summableSeries, *sum, *Breaker)) (own []ownSeries[K], others sum) {
	g.mu.Lock()
	defer g.mu.Unlock()
	w := &g.observers
	others = w.others.emptySum()
	add(&w.others, &others, g.unguarded)
	// the unguarded breaker belongs to no key, so its state does not count
	clear(others.values[:3*stateCount])
	members := w.members[:0]
	for i := range g.shards {
		s := &g.shards[i]
		s.mu.RLock()
		members = append(members, s.ring...)
		others.add(s.evicted, 1)
		s.mu.RUnlock()
	}
	g.assignSeries(members, time.Now())
	for _, m := range members {
		if !m.pinned {
			add(&w.others, &others, m.breaker)
			m.shown, m.callsShown = true, m.breaker.callsCounted(m.breaker.phase.Load())
		}
	}
	for _, s := range w.own {
		own = append(own, *s)
	}
	others.add(w.moved, 1)
	w.highest.raiseCounters(&others, &w.others)
	clear(members) // so that evicted members can be collected
	w.members = members
	return own, others
}

// newGroupSeries returns the series of the group itself: its keys, evictions, unguarded calls and
// prevented openings.
func newGroupSeries(name string, began time.Time) (all [4]*stat.Series) {
	for i, instrument := range []*stat.Instrument{
		instrument.BreakerGroupMembers, instrument.BreakerGroupEvictions, instrument.BreakerGroupUnguarded, instrument.BreakerGroupPrevented,
	} {
		all[i] = instrument.Series(name)
		all[i].Created = began
	}
	return all
}
