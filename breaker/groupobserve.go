package breaker

import (
	"slices"
	"time"

	"github.com/weir-go/weir/internal/instrument"
	"github.com/weir-go/weir/stat"
	"github.com/weir-go/weir/window"
)

// otherKey stands in metrics for all keys without series of their own.
const otherKey = "_other"

// observers is what a group keeps for those that observe it. Calls never touch it.
type observers[K comparable] struct {
	name    string
	others  lines
	own     map[string]*own[K] // by label
	moved   account            // what _other shows of members with series of their own, less what it does not show of those that had some
	highest account            // the counters of _other that were shown
	list    []*member[K]       // reused
}

func (w *observers[K]) begin(name string, t0 time.Time) {
	w.name, w.others, w.own = name, newLines(name, otherKey, t0), map[string]*own[K]{}
	w.moved, w.highest = w.others.zero(), w.others.zero()
}

// Observe yields the figures of the members, see [Breaker.Observe], each with its key
// in the attribute weir.group.key; and those of the group itself.
//
// Up to GroupConfig.MaxSeries keys have series of their own: see there. Of all others
// together, the key is _other, the counters are the sums, which go on when members are
// evicted, and weir.breaker.state is the number of members in each state; they have no
// gauges. Unguarded calls are in these sums. A key whose text is the same as another's,
// or empty, is one of the others.
//
// The number of series is bounded; the time grows with the number of members. Observe
// holds a lock that a new key waits for only while it copies a part of the members.
func (g *Group[K]) Observe(yield func(*stat.Series, float64) bool) {
	some, others := g.look((*lines).add)
	for _, s := range some {
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
		if !yield(g.series[i], float64(n)) {
			return
		}
	}
}

// Histograms yields how long the calls of each member with series of its own took, if
// Config.Latency is set, and those of all others together, with the key _other.
func (g *Group[K]) Histograms(yield func(*stat.Series, stat.Histogram) bool) {
	if !g.rules.Load().config.Latency {
		return
	}
	some, others := g.look((*lines).addTimes)
	for _, s := range some {
		if !yield(s.lines.duration, s.latency().Histogram()) {
			return
		}
	}
	yield(g.watching.others.duration, others.latency().Histogram())
}

// look returns the series of keys' own, and the sum of all others as add does it.
//
// The members and the sums of those evicted are copied together, for each part under its
// lock. So each call is in exactly one of them. A member that is evicted afterwards keeps
// the figures that it had.
func (g *Group[K]) look(add func(*lines, *account, *Breaker)) (some []own[K], others account) {
	g.mu.Lock()
	defer g.mu.Unlock()
	w := &g.watching
	others = w.others.zero()
	add(&w.others, &others, g.unguarded)
	clear(others.figures[:3*stateCount]) // it is no member
	list := w.list[:0]
	for i := range g.shards {
		s := &g.shards[i]
		s.mu.RLock()
		list = append(list, s.ring...)
		others.plus(s.gone, 1)
		s.mu.RUnlock()
	}
	g.assign(list, time.Now())
	for _, m := range list {
		if !m.pinned {
			add(&w.others, &others, m.breaker)
			m.shown, m.calls = true, m.breaker.calls(m.breaker.phase.Load())
		}
	}
	for _, s := range w.own {
		some = append(some, *s)
	}
	others.plus(w.moved, 1)
	w.highest.raise(&others, &w.others)
	clear(list) // not to keep members that are evicted
	w.list = list
	return some, others
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

// raise replaces a counter by the highest that was shown before, if that is higher. Sums of the
// same times in another order differ by rounding, and Prometheus takes a counter that falls by a
// nanosecond for one that began again at 0.
func (a *account) raise(shown *account, l *lines) {
	for i, line := range l.order {
		if line.Instrument.Kind == stat.Counter {
			a.figures[i] = max(a.figures[i], shown.figures[i])
			shown.figures[i] = a.figures[i]
		}
	}
	if shown.times == nil {
		return
	}
	shown.times.Sum = max(shown.times.Sum, a.latency().Sum)
	a.times = &window.Latency{Sum: shown.times.Sum}
}

// lines are the series of a breaker, and those of them that can be added up.
type lines struct {
	*series
	order []*stat.Series // as Breaker.observe yields them: those of the states first
}

func newLines(name, key string, began time.Time) lines {
	s := newSeries(name, key, began)
	l := lines{series: s}
	for state := range stateCount {
		l.order = append(l.order, s.state[state], s.transitions[state], s.time[state])
	}
	l.order = append(l.order, s.calls[:]...)
	l.order = append(l.order, s.slow, s.late, s.abandoned, s.dropped, s.active)
	return l
}

func (l *lines) zero() account { return account{figures: make([]float64, len(l.order))} }

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
	a := l.zero()
	l.add(&a, b)
	l.addTimes(&a, b)
	for i, line := range l.order {
		if line.Instrument.Kind != stat.Counter {
			a.figures[i] = 0
		}
	}
	return a
}

// newGroupSeries makes the lines of a group itself: members, evictions, unguarded.
func newGroupSeries(name string, began time.Time) (all [3]*stat.Series) {
	for i, instrument := range []*stat.Instrument{instrument.BreakerGroupMembers, instrument.BreakerGroupEvictions, instrument.BreakerGroupUnguarded} {
		all[i] = instrument.Series(name)
		all[i].Created = began
	}
	return all
}
