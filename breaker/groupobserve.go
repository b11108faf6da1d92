package breaker

import (
	"slices"
	"time"

	"github.com/weir-go/weir/stat"
	"github.com/weir-go/weir/window"
)

// otherKey stands in metrics for all keys without series of their own.
const otherKey = "_other"

// Observe yields the figures of the members, see [Breaker.Observe], each with its key
// in the attribute weir.group.key; and those of the group itself.
//
// Up to GroupConfig.MaxSeries keys have series of their own: see there. Of all others
// together, the key is _other, the counters are the sums, which go on when members are
// evicted, and weir.breaker.state is the number of members in each state; they have no
// gauges. Unguarded calls are in these sums. A key whose words are the same as another's,
// or none, is one of the others.
//
// The number of series is bounded; the time grows with the number of members. Observe
// holds a lock that a new key waits for only while it copies a part of the members.
func (g *Group[K]) Observe(yield func(*stat.Series, float64) bool) {
	seats, others := g.look((*lines).add)
	if g.passed.Load() > 0 {
		g.watching.others.addCalls(&others, g.unguarded)
	}
	g.keepRising(others.figures)
	for _, s := range seats {
		if !s.observe(yield) {
			return
		}
	}
	for i, line := range g.watching.others.order {
		if !yield(line, others.figures[i]) {
			return
		}
	}
	for i, n := range [3]int64{g.members.Load(), g.evictions.Load(), g.passed.Load()} {
		if !yield(g.own[i], float64(n)) {
			return
		}
	}
}

// keepRising replaces a sum of counters by the highest that was shown before, if that is
// higher. Sums of the same times in another order differ by rounding, and Prometheus takes a
// counter that falls by a nanosecond for one that began again at 0.
func (g *Group[K]) keepRising(figures []float64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	w := &g.watching
	for i, line := range w.others.order {
		if line.Instrument.Kind == stat.Counter {
			w.highest[i] = max(w.highest[i], figures[i])
			figures[i] = w.highest[i]
		}
	}
}

// risingSum is keepRising for the sum of a histogram.
func (g *Group[K]) risingSum(sum float64) float64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.watching.longest = max(g.watching.longest, sum)
	return g.watching.longest
}

// Histograms yields how long the calls of each member with series of its own took, if
// Config.Latency is set, and those of all others together, with the key _other.
func (g *Group[K]) Histograms(yield func(*stat.Series, stat.Histogram) bool) {
	if !g.rules.Load().config.Latency {
		return
	}
	seats, others := g.look((*lines).addTimes)
	g.watching.others.addTimes(&others, g.unguarded)
	for _, s := range seats {
		if !yield(s.lines.duration, s.latency().Histogram()) {
			return
		}
	}
	times := others.latency()
	times.Sum = g.risingSum(times.Sum)
	yield(g.watching.others.duration, times.Histogram())
}

// account is a sum of what breakers have counted.
type account struct {
	figures []float64       // in the order of lines
	times   *window.Latency // nil for none
}

func (a *account) latency() (l window.Latency) {
	if a.times != nil {
		l = *a.times
	}
	return l
}

// plus adds another account as often as sign says: 1 or −1.
func (a *account) plus(more account, sign float64) {
	for i, v := range more.figures {
		a.figures[i] += sign * v
	}
	if more.times != nil {
		a.plusTimes(*more.times, int64(sign))
	}
}

func (a *account) plusTimes(more window.Latency, sign int64) {
	sum := a.latency()
	longest := max(sum.Max, more.Max)
	for i := range more.Counts {
		more.Counts[i] *= sign
	}
	more.Sum, more.Under, more.Over = more.Sum*float64(sign), more.Under*sign, more.Over*sign
	sum = sum.Plus(more)
	sum.Max = longest
	a.times = &sum
}

// lines are the series of a breaker, and those of them that can be added up.
type lines struct {
	*series
	order []*stat.Series // as Breaker.observe yields them: those of the states first
}

func newLines(name, key string, began time.Time) lines {
	s := newSeries(name, key, began)
	l := lines{series: s}
	for state := range states {
		l.order = append(l.order, s.state[state], s.transitions[state], s.time[state])
	}
	l.order = append(l.order, s.calls[:]...)
	l.order = append(l.order, s.slow, s.late, s.abandoned, s.dropped, s.active)
	return l
}

// addCalls adds what the breaker has counted, without its states: those of a breaker that
// is no member.
func (l *lines) addCalls(to *account, b *Breaker) {
	all := account{figures: make([]float64, len(l.order))}
	l.add(&all, b)
	clear(all.figures[:3*states])
	to.plus(all, 1)
}

// add adds the breaker's figures.
func (l *lines) add(to *account, b *Breaker) {
	next := 0
	b.observe(l.series, func(line *stat.Series, v float64) bool {
		if i := slices.Index(l.order[next:], line); i >= 0 {
			next += i
			to.figures[next] += v
		}
		return true
	})
}

// addTimes adds how long the breaker's calls took.
func (l *lines) addTimes(to *account, b *Breaker) {
	if p := b.phase.Load(); p.hasTimed() {
		if times := b.lifetime(p); times.Count() > 0 {
			to.plusTimes(times, 1)
		}
	}
}

// counted returns all that the breaker has counted, with 0 for what is no counter.
func (l *lines) counted(b *Breaker) account {
	a := account{figures: make([]float64, len(l.order))}
	l.add(&a, b)
	l.addTimes(&a, b)
	for i, line := range l.order {
		if line.Instrument.Kind != stat.Counter {
			a.figures[i] = 0
		}
	}
	return a
}

// take adds what the breaker has counted to an account as often as sign says.
func (a *account) take(b *Breaker, sign float64, l lines) { a.plus(l.counted(b), sign) }

// newGroupSeries makes the lines of a group itself: members, evictions, unguarded.
func newGroupSeries(name string, began time.Time) (own [3]*stat.Series) {
	for i, instrument := range []*stat.Instrument{stat.BreakerGroupMembers, stat.BreakerGroupEvictions, stat.BreakerGroupUnguarded} {
		own[i] = instrument.Series(name)
		own[i].Created = began
	}
	return own
}
