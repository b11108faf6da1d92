package breaker

import (
	"cmp"
	"slices"
	"time"

	"github.com/weir-go/weir/stat"
	"github.com/weir-go/weir/window"
)

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
