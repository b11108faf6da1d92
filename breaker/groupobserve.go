package breaker

import (
	"cmp"
	"slices"
	"time"

	"github.com/weir-go/weir/internal/instrument"
	"github.com/weir-go/weir/stat"
	"github.com/weir-go/weir/window"
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

// maxIdle is how long a key keeps series of its own without calls. After that, another key that is
// in use may replace it. So maxIdle bounds how fast new keys can make new series.
const maxIdle = 10 * time.Minute

// ownSeries is the series of one key. The member of the key is not evicted while it has series of
// its own.
type ownSeries[K comparable] struct {
	member *member[K]
	summableSeries
	// what _other showed of the member before it got these series; never changed
	before sum
	totals window.Totals // when the series were last checked
	usedAt time.Time     // when a call or a refusal was last found
}

// assignSeries gives series to members that are in use or were not shown yet, in the order in which
// they were added, as long as there are free or idle series. The lock of the observers is held.
func (g *Group[K]) assignSeries(members []*member[K], now time.Time) {
	w := &g.observers
	idle := w.idleSeries(now)
	free := g.config.MaxSeries - len(w.own)
	if free+len(idle) == 0 {
		return
	}
	for _, m := range seriesCandidates(members) {
		switch {
		case w.own[m.label] != nil: // another key has the same text
		case free > 0:
			if w.assign(m, now) {
				free--
			}
		case len(idle) > 0:
			w.reclaim(idle[0])
			idle = idle[1:]
			w.assign(m, now)
		}
	}
}

// seriesCandidates returns the members that may get series, oldest first.
func seriesCandidates[K comparable](members []*member[K]) (some []*member[K]) {
	for _, m := range members {
		if !m.pinned && m.label != otherKey && m.label != "" && (!m.shown || m.isInUse()) {
			some = append(some, m)
		}
	}
	slices.SortFunc(some, func(a, b *member[K]) int { return cmp.Compare(a.number, b.number) })
	return some
}

// assign gives series to a member, unless it was evicted meanwhile. Calls that _other has shown
// stay with _other, so that no counter falls.
func (w *observerState[K]) assign(m *member[K], now time.Time) bool {
	if !m.pin() {
		return false
	}
	s := &ownSeries[K]{member: m, usedAt: now, before: w.others.emptySum()}
	began := m.breaker.clock.Epoch
	if m.shown {
		s.before, began = w.others.countersOf(m.breaker), now
		w.moved.add(s.before, 1)
	}
	s.summableSeries = newSummableSeries(w.name, m.label, began)
	w.own[m.label] = s
	return true
}

// reclaim ends the series of a key. The calls that its member counts from now on are shown by
// _other.
func (w *observerState[K]) reclaim(s *ownSeries[K]) {
	w.forget(s.member)
	s.member.shown = true
	s.member.unpin()
}

// forget ends the series of a key. From now on the calls of the key are in the sum for _other,
// which has not shown them, so forget subtracts them.
func (w *observerState[K]) forget(m *member[K]) {
	w.moved.add(w.others.countersOf(m.breaker), -1)
	delete(w.own, m.label)
}

// idleSeries returns the series that were idle for maxIdle, longest first.
func (w *observerState[K]) idleSeries(now time.Time) (idle []*ownSeries[K]) {
	for _, s := range w.own {
		if totals := s.member.breaker.totals(); totals != s.totals {
			s.totals, s.usedAt = totals, now
		}
		if now.Sub(s.usedAt) >= maxIdle {
			idle = append(idle, s)
		}
	}
	slices.SortFunc(idle, func(a, b *ownSeries[K]) int { return a.usedAt.Compare(b.usedAt) })
	return idle
}

// isInUse reports whether the breaker has calls in its window. The window of a breaker that refuses
// calls does not move. For such a breaker isInUse reports whether there was a call or a refusal
// since the last observation. Without this rule, callers could open many breakers and leave them,
// and all of them would be in use.
func (m *member[K]) isInUse() bool {
	b := m.breaker
	p := b.phase.Load()
	if p.passes != allCalls {
		return b.callsCounted(p) != m.callsShown
	}
	c := b.counts(b.peekNow())
	return c.Calls() > 0
}

// observe yields the metrics of the key, and reports whether yield wants more.
func (s *ownSeries[K]) observe(yield func(*stat.Series, float64) bool) bool {
	return s.eachMetric(s.member.breaker, func(of *stat.Series, i int, v float64) bool {
		if i >= 0 {
			v -= s.before.values[i]
		}
		return yield(of, v)
	})
}

// latency returns the durations in the histogram of the key.
func (s *ownSeries[K]) latency() window.Latency {
	var all sum
	all.addLatency(s.before.durations(), -1)
	s.addLatency(&all, s.member.breaker)
	return all.durations()
}

// summableSeries has the series of a breaker, and the order of those that can be summed over
// breakers.
type summableSeries struct {
	*series
	order []*stat.Series // in the order of Breaker.observe: the series of the states first
}

func newSummableSeries(name, key string, began time.Time) summableSeries {
	s := newSeries(name, key, began)
	l := summableSeries{series: s}
	for i := range stateCount {
		l.order = append(l.order, s.state[i], s.transitions[i], s.time[i])
	}
	l.order = append(l.order, s.calls[:]...)
	l.order = append(l.order, s.slow, s.late, s.abandoned, s.dropped, s.active)
	return l
}

// emptySum returns an empty sum.
func (l *summableSeries) emptySum() sum { return sum{values: make([]float64, len(l.order))} }

// add adds the metrics of b to the sum, except durations.
func (l *summableSeries) add(to *sum, b *Breaker) {
	l.eachMetric(b, func(_ *stat.Series, i int, v float64) bool {
		if i >= 0 {
			to.values[i] += v
		}
		return true
	})
}

// eachMetric calls f with each metric of b and its index in order, or -1 if it cannot be summed.
func (l *summableSeries) eachMetric(b *Breaker, f func(s *stat.Series, i int, v float64) bool) bool {
	next := 0
	return b.observe(l.series, func(s *stat.Series, v float64) bool {
		i := slices.Index(l.order[next:], s)
		if i >= 0 {
			i += next
			next = i
		}
		return f(s, i, v)
	})
}

// addLatency adds the durations of the calls of b to the sum.
func (l *summableSeries) addLatency(to *sum, b *Breaker) {
	if p := b.phase.Load(); p.hasLatency() {
		if all := b.lifetimeLatency(p); all.Count() > 0 {
			to.addLatency(all, 1)
		}
	}
}

// countersOf returns the counters of b, and 0 for metrics that are not counters.
func (l *summableSeries) countersOf(b *Breaker) sum {
	a := l.emptySum()
	l.add(&a, b)
	l.addLatency(&a, b)
	for i, s := range l.order {
		if s.Instrument.Kind != stat.Counter {
			a.values[i] = 0
		}
	}
	return a
}

// sum is a sum of the metrics of breakers.
type sum struct {
	values  []float64       // in the order of summableSeries
	latency *window.Latency // nil for no call
}

func (a *sum) durations() (l window.Latency) {
	if a.latency != nil {
		l = *a.latency
	}
	return l
}

// add adds more to the sum, or subtracts it if sign is -1.
func (a *sum) add(more sum, sign float64) {
	for i, v := range more.values {
		a.values[i] += sign * v
	}
	if more.latency != nil {
		a.addLatency(*more.latency, int64(sign))
	}
}

// addLatency adds more to the durations, or subtracts it if sign is -1.
func (a *sum) addLatency(more window.Latency, sign int64) {
	all := a.durations()
	longest := max(all.Max, more.Max)
	for i := range more.Counts {
		more.Counts[i] *= sign
	}
	more.Sum, more.Under, more.Over = more.Sum*float64(sign), more.Under*sign, more.Over*sign
	all = all.Plus(more)
	all.Max = longest
	a.latency = &all
}

// raiseCounters replaces each counter of now that is below the highest value that was shown before.
// a holds these highest values. Sums of the same times in a different order differ by rounding.
// Prometheus takes a counter that falls, even by a nanosecond, for a counter that restarted from 0.
func (a *sum) raiseCounters(now *sum, l *summableSeries) {
	for i, s := range l.order {
		if s.Instrument.Kind == stat.Counter {
			a.values[i] = max(a.values[i], now.values[i])
			now.values[i] = a.values[i]
		}
	}
	if now.latency == nil {
		return
	}
	now.latency.Sum = max(now.latency.Sum, a.durations().Sum)
	a.latency = &window.Latency{Sum: now.latency.Sum}
}
