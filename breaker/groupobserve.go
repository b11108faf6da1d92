package breaker

import (
	"slices"
	"sync"
	"time"

	"github.com/weir-go/weir/stat"
)

// otherKey stands in metrics for all keys without series of their own.
const otherKey = "_other"

// Observe yields the figures of the members, see [Breaker.Observe], each with its key
// in the attribute weir.group.key; and those of the group itself.
//
// The first GroupConfig.MaxSeries keys have series of their own. Of all others
// together, the key is _other, the counters are the sums, which go on when members are
// let go, and weir.breaker.state is the number of members in each state; they have no
// gauges. A key whose words are the same as another's, or none, is one of the others.
//
// The number of series is bounded; the time grows with the number of members. Observe
// takes no lock that a call could wait for.
func (g *Group[K]) Observe(yield func(*stat.Series, float64)) {
	others := g.other.none()
	for i := range g.shards {
		plus(others, *g.shards[i].gone.Load())
	}
	for m := range g.members {
		b := m.kept.Load()
		switch {
		case b == nil:
			if last := m.last.Load(); last != nil { // it is being let go
				plus(others, *last)
			}
		case m.seated:
			b.Observe(yield)
		default:
			g.other.add(others, b)
		}
	}
	if g.passed.Load() > 0 {
		g.other.add(others, g.unguarded)
	}
	g.other.yield(others, yield)
	yield(g.own[0], float64(g.placed.Load()))
	yield(g.own[1], float64(g.evictions.Load()))
	yield(g.own[2], float64(g.passed.Load()))
}

// Histograms yields how long the calls of each member with series of its own took, if
// Config.Latency is set. Those of the others are not added up.
func (g *Group[K]) Histograms(yield func(*stat.Series, stat.Histogram)) {
	for m := range g.members {
		if m.seated {
			m.kept.Load().Histograms(yield)
		}
	}
}

// sums are figures of several breakers, added up under one set of series.
type sums struct {
	series *series
	order  []*stat.Series // that can be added up, in the order of Breaker.observe

	mu    sync.Mutex // of observers among themselves
	shown []float64
}

// newSums learns from any breaker what there is to add up.
func newSums(name string, b *Breaker) *sums {
	s := &sums{series: newSeries(name, otherKey, b.epoch)}
	b.observe(s.series, func(line *stat.Series, _ float64) {
		if k := line.Instrument.Kind; k == stat.Counter || k == stat.UpDown {
			s.order = append(s.order, line)
		}
	})
	s.shown = s.none()
	return s
}

func (s *sums) none() []float64 { return make([]float64, len(s.order)) }

// add adds the breaker's figures.
func (s *sums) add(to []float64, b *Breaker) {
	next := 0
	b.observe(s.series, func(line *stat.Series, v float64) {
		if i := slices.Index(s.order[next:], line); i >= 0 {
			next += i
			to[next] += v
		}
	})
}

func plus(sum, more []float64) {
	for i, v := range more {
		sum[i] += v
	}
}

// counters returns what the breaker has counted, with 0 for what is no counter.
func (s *sums) counters(b *Breaker) []float64 {
	sum := s.none()
	s.add(sum, b)
	for i, line := range s.order {
		if line.Instrument.Kind != stat.Counter {
			sum[i] = 0
		}
	}
	return sum
}

// yield shows the sums. A counter never shows less than before: the counters of a
// member may not be in sight while it is being dropped.
func (s *sums) yield(now []float64, yield func(*stat.Series, float64)) {
	s.mu.Lock()
	for i, line := range s.order {
		if line.Instrument.Kind == stat.Counter {
			now[i] = max(now[i], s.shown[i])
		}
	}
	copy(s.shown, now)
	s.mu.Unlock()
	for i, line := range s.order {
		yield(line, now[i])
	}
}

// newGroupSeries makes the lines of a group itself: members, evictions, unguarded.
func newGroupSeries(name string, began time.Time) (lines [3]*stat.Series) {
	for i, instrument := range []*stat.Instrument{stat.BreakerGroupMembers, stat.BreakerGroupEvictions, stat.BreakerGroupUnguarded} {
		lines[i] = instrument.Series(name)
		lines[i].Created = began
	}
	return lines
}
