package breaker

import (
	"cmp"
	"slices"
	"time"

	"github.com/weir-go/weir/stat"
	"github.com/weir-go/weir/window"
)

// seatRest is how long a key with series of its own may be without calls before another
// key that is in use gets their place. It bounds how fast strangers can make new series.
const seatRest = 10 * time.Minute

// observers are what those who look at a group keep. Calls never touch it.
type observers[K comparable] struct {
	name    string
	others  lines
	highest []float64 // the counters of the others that were shown, in the order of lines
	longest float64   // the sum of the times of the others that was shown
	seats   []*seat[K]
	taken   map[string]*seat[K] // the same, by label
	list    []*member[K]        // reused
}

func (w *observers[K]) begin(name string, t0 time.Time) {
	w.name, w.others, w.taken = name, newLines(name, otherKey, t0), map[string]*seat[K]{}
	w.highest = make([]float64, len(w.others.order))
}

// seat is a place for series of a key's own. The key keeps it when its member is evicted,
// until another key needs the place.
type seat[K comparable] struct {
	m     *member[K]
	lines lines
	base  account       // what the series show beyond what the member has counted; never written to
	calls window.Totals // when last looked at
	used  time.Time     // when there was a new call, or the breaker was not closed
	last  bool          // the member was evicted and its last figures have been shown
}

// look returns the seats, and the sum of all other members as add does it.
//
// The members and the sums of those evicted are copied together, for each part under its
// lock. So each call is in exactly one of them. A member that is evicted afterwards keeps
// the figures that it had.
func (g *Group[K]) look(add func(*lines, *account, *Breaker)) (seats []seat[K], others account) {
	g.mu.Lock()
	defer g.mu.Unlock()
	w := &g.watching
	others.figures = make([]float64, len(w.others.order))
	list := w.list[:0]
	for i := range g.shards {
		s := &g.shards[i]
		s.mu.RLock()
		list = append(list, s.ring...)
		others.plus(s.gone, 1)
		s.mu.RUnlock()
	}
	g.assign(list, &others, time.Now())
	for _, m := range list {
		if !m.seated {
			add(&w.others, &others, m.breaker)
			m.shown = true
		}
	}
	for _, s := range w.seats {
		s.last = s.evicted()
		seats = append(seats, *s)
	}
	clear(list) // not to keep what is evicted
	w.list = list
	return seats, others
}

// assign gives seats to members without one. A key that had a seat before its member was
// evicted gets it back. Free and idle seats go to keys that were not shown yet or are in use,
// in the order in which the group admitted them. The observers' lock is held.
func (g *Group[K]) assign(list []*member[K], others *account, now time.Time) {
	w := &g.watching
	idle := w.idle(now)
	for _, m := range w.candidates(list, g.config.MaxSeries > len(w.seats)-len(idle)) {
		s := w.taken[m.label]
		switch {
		case s != nil: // the key is back, or another one with the same words is there
			if s.m.key == m.key && s.evicted() {
				g.sit(s, m, others)
			}
		case len(w.seats) < g.config.MaxSeries:
			if s := w.seatFor(m, now); g.sit(s, m, others) {
				w.seats = append(w.seats, s)
				w.taken[m.label] = s
			}
		case len(idle) > 0:
			if s := w.seatFor(m, now); g.sit(s, m, others) {
				old := idle[0]
				idle = idle[1:]
				g.leave(old, others)
				w.seats[slices.Index(w.seats, old)] = s
				w.taken[m.label] = s
			}
		}
	}
}

// candidates returns the members that may get a seat; those without a claim to one only
// if there is any to give.
func (w *observers[K]) candidates(list []*member[K], room bool) (some []*member[K]) {
	if !room && !slices.ContainsFunc(w.seats, (*seat[K]).evicted) {
		return nil
	}
	for _, m := range list {
		if m.seated || m.label == otherKey || m.label == "" {
			continue
		}
		if w.taken[m.label] != nil || room && (!m.shown || m.breaker.inUse()) {
			some = append(some, m)
		}
	}
	slices.SortFunc(some, func(a, b *member[K]) int { return cmp.Compare(a.number, b.number) })
	return some
}

func (w *observers[K]) seatFor(m *member[K], now time.Time) *seat[K] {
	began := m.breaker.epoch
	if m.shown { // its series begin with what comes now
		began = now
	}
	return &seat[K]{lines: newLines(w.name, m.label, began), used: now}
}

// idle returns the seats that nobody has used for long, the longest first.
func (w *observers[K]) idle(now time.Time) (idle []*seat[K]) {
	for _, s := range w.seats {
		b := s.m.breaker
		if calls := b.totals(); calls != s.calls || b.stops() {
			s.calls, s.used = calls, now
		}
		if now.Sub(s.used) >= seatRest && (s.last || !s.evicted()) {
			idle = append(idle, s)
		}
	}
	slices.SortFunc(idle, func(a, b *seat[K]) int { return cmp.Compare(a.used.UnixNano(), b.used.UnixNano()) })
	return idle
}

// sit gives a seat to a member, unless it was evicted meanwhile. Calls that were shown as
// those of the others stay with them: neither their counters nor the member's jump.
func (g *Group[K]) sit(s *seat[K], m *member[K], others *account) bool {
	m.shard.mu.Lock()
	defer m.shard.mu.Unlock()
	if m.shard.byKey[m.key] != m {
		return false
	}
	m.seated = true
	l := g.watching.others
	base := account{figures: make([]float64, len(l.order))}
	if s.m != nil {
		base.plus(s.base, 1)
		base.take(s.m.breaker, 1, l)
	}
	if m.shown {
		counted := l.counted(m.breaker)
		base.plus(counted, -1)
		m.shard.gone.plus(counted, 1)
		others.plus(counted, 1)
	}
	s.m, s.base = m, base
	return true
}

// leave takes the seat from its key. A member that is still there is one of the others from
// now on, with what it counts from now on.
func (g *Group[K]) leave(s *seat[K], others *account) {
	m := s.m
	delete(g.watching.taken, m.label)
	m.shard.mu.Lock()
	defer m.shard.mu.Unlock()
	if m.shard.byKey[m.key] != m {
		return
	}
	m.seated, m.shown = false, true
	counted := g.watching.others.counted(m.breaker)
	m.shard.gone.plus(counted, -1)
	others.plus(counted, -1)
}

func (s *seat[K]) evicted() bool { return s.m.breaker.phase.Load().state == evicted }

// inUse reports whether the breaker has calls in its window, or lets not all calls pass.
func (b *Breaker) inUse() bool {
	c := b.counts(b.seenNow())
	return c.Calls() > 0 || b.stops()
}

// stops reports whether the breaker is in a state in which it does not let all calls pass.
func (b *Breaker) stops() bool {
	p := b.phase.Load()
	return p.state == Open || p.state == HalfOpen || p.state == ForcedOpen
}

// observe yields the seat's figures; of a member that was evicted the counters alone.
// It reports whether the reader wants more.
func (s *seat[K]) observe(yield func(*stat.Series, float64) bool) bool {
	next, evicted := 0, s.evicted()
	return s.m.breaker.observe(s.lines.series, func(line *stat.Series, v float64) bool {
		if i := slices.Index(s.lines.order[next:], line); i >= 0 {
			next += i
			v += s.base.figures[next]
		}
		return evicted && line.Instrument.Kind != stat.Counter || yield(line, v)
	})
}

func (s *seat[K]) latency() window.Latency {
	sum := account{}
	if s.base.times != nil {
		sum.plusTimes(*s.base.times, 1)
	}
	s.lines.addTimes(&sum, s.m.breaker)
	return sum.latency()
}
