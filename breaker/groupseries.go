package breaker

import (
	"cmp"
	"slices"
	"time"

	"github.com/weir-go/weir/stat"
	"github.com/weir-go/weir/window"
)

// seriesRest is how long a key with series of its own may be without calls before a key that is in
// use gets them. It bounds how fast strangers can make new series.
const seriesRest = 10 * time.Minute

// own are the series of one key's own. Its member is not evicted while it has them.
type own[K comparable] struct {
	m     *member[K]
	lines lines
	base  account       // what _other showed of the member before; never written to
	calls window.Totals // when the series were last looked at
	used  time.Time     // when there was a new call, or one was refused
}

// assign gives series of their own to members that were not shown yet or are in use, in the order
// in which the group admitted them, as long as there are free or idle ones. The observers' lock is
// held.
func (g *Group[K]) assign(list []*member[K], now time.Time) {
	w := &g.watching
	idle := w.idle(now)
	free := g.config.MaxSeries - len(w.own)
	if free+len(idle) == 0 {
		return
	}
	for _, m := range candidates(list) {
		switch {
		case w.own[m.label] != nil: // another key has the same text
		case free > 0:
			if w.give(m, now) {
				free--
			}
		case len(idle) > 0:
			w.take(idle[0])
			idle = idle[1:]
			w.give(m, now)
		}
	}
}

// candidates returns the members that may get series of their own, the oldest first.
func candidates[K comparable](list []*member[K]) (some []*member[K]) {
	for _, m := range list {
		if !m.pinned && m.label != otherKey && m.label != "" && (!m.shown || m.inUse()) {
			some = append(some, m)
		}
	}
	slices.SortFunc(some, func(a, b *member[K]) int { return cmp.Compare(a.number, b.number) })
	return some
}

// give gives a member series of its own, unless it was evicted meanwhile. Calls that were shown as
// those of the others stay with them, so that no counter jumps.
func (w *observers[K]) give(m *member[K], now time.Time) bool {
	if !m.pin() {
		return false
	}
	s := &own[K]{m: m, used: now, base: account{figures: make([]float64, len(w.others.order))}}
	began := m.breaker.clock.Epoch
	if m.shown {
		s.base, began = w.others.counted(m.breaker), now
		w.moved.plus(s.base, 1)
	}
	s.lines = newLines(w.name, m.label, began)
	w.own[m.label] = s
	return true
}

// end ends the series of a key that is forgotten. The sum of the evicted members has its calls, most
// of which _other has not shown.
func (w *observers[K]) end(m *member[K]) {
	w.moved.plus(w.others.counted(m.breaker), -1)
	delete(w.own, m.label)
}

// take ends the series of a key. Its member is one of the others from now on, with the calls that
// it counts from now on.
func (w *observers[K]) take(s *own[K]) {
	w.moved.plus(w.others.counted(s.m.breaker), -1)
	s.m.shown = true
	s.m.unpin()
	delete(w.own, s.m.label)
}

// idle returns the series that have been idle for seriesRest, the longest first.
func (w *observers[K]) idle(now time.Time) (idle []*own[K]) {
	for _, s := range w.own {
		b := s.m.breaker
		if calls := b.totals(); calls != s.calls {
			s.calls, s.used = calls, now
		}
		if now.Sub(s.used) >= seriesRest {
			idle = append(idle, s)
		}
	}
	slices.SortFunc(idle, func(a, b *own[K]) int { return a.used.Compare(b.used) })
	return idle
}

// inUse reports whether the breaker has calls in its window. If it does not let all calls through, its
// window stands still, and it is in use if there was a call, or one was refused, since the last look:
// strangers can open breakers and leave them so.
func (m *member[K]) inUse() bool {
	b := m.breaker
	if b.stops() {
		return b.calls(b.phase.Load()) != m.calls
	}
	c := b.counts(b.seenNow())
	return c.Calls() > 0
}

// stops reports whether the breaker is in a state in which it does not let all calls through.
func (b *Breaker) stops() bool {
	p := b.phase.Load()
	return p.state == Open || p.state == HalfOpen || p.state == ForcedOpen
}

// observe yields the figures that the key's series show, and reports whether the reader wants more.
func (s *own[K]) observe(yield func(*stat.Series, float64) bool) bool {
	next := 0
	return s.m.breaker.observe(s.lines.series, func(line *stat.Series, v float64) bool {
		if i := slices.Index(s.lines.order[next:], line); i >= 0 {
			next += i
			v -= s.base.figures[next]
		}
		return yield(line, v)
	})
}

// latency returns the times that the key's histogram shows.
func (s *own[K]) latency() window.Latency {
	var sum account
	sum.plusTimes(s.base.latency(), -1)
	s.lines.addTimes(&sum, s.m.breaker)
	return sum.latency()
}
