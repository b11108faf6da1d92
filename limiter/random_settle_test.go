package limiter_test

import (
	"context"
	"errors"
	"slices"
	"testing/synctest"
	"time"

	"github.com/weir-go/weir/limiter"
)

// toleratedDelay is the tolerated delay of a served caller: rates are rounded to nanoseconds, and
// paces to microseconds.
const toleratedDelay = 2 * time.Microsecond

// checkResults compares the results of the waiting callers with the oracles.
func (w *randomTest) checkResults() {
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(w.events) > 0 {
		i := w.nextEvent()
		e := w.events[i]
		w.events = slices.Delete(w.events, i, i+1)
		if e.err == nil {
			w.checkServed(e)
		} else {
			w.checkLeft(e)
		}
		w.settled = e.at
	}
	now := w.now()
	w.settled = now
	for _, s := range w.subjects {
		if len(s.queue) > 0 && !s.busy() {
			room, n := s.room(now), s.queue[0].n
			w.check(room < float64(n)+roundingError || s.full != nil && s.full(now, toleratedDelay), "%s: the first waiter waits for %d tokens of %v", s.name, n, room)
		}
	}
	for _, g := range w.waitingCallers {
		w.check(g.until < 0 || now <= g.until, "%s: a caller still waits %s after its time was up", g.where.name, now-g.until)
		w.check(!g.gone, "%s: a caller still waits whose context is done", g.where.name)
	}
}

// nextEvent returns the index of the event to check next: among the earliest ones, a caller that
// left, or a caller that can have been served before the others.
func (w *randomTest) nextEvent() int {
	first := w.events[0].at
	for _, e := range w.events {
		first = min(first, e.at)
	}
	best := -1
	for i, e := range w.events {
		if e.at > first+toleratedDelay {
			continue
		}
		if e.err != nil {
			return i
		}
		if g := e.who; best < 0 || g.where.queue[0] == g && !g.where.busy() {
			best = i
		}
	}
	return best
}

func (w *randomTest) checkServed(e event) {
	g, n := e.who, e.who.where
	w.check(n.queue[0] == g && !n.busy(), "%s: a caller overtakes others", n.name)
	if before := e.at - toleratedDelay; before > w.settled {
		room := n.room(before)
		w.check(room < float64(g.n)+roundingError, "%s: a caller is served %d only at %s: there were %v", n.name, g.n, e.at, room)
	}
	room := n.room(e.at)
	w.check(room > float64(g.n)-roundingError, "%s: a caller is served %d of %v", n.name, g.n, room)
	w.check(g.until < 0 || e.at <= g.until, "%s: a caller is served %s after its time was up", n.name, e.at-g.until)
	n.take(e.at, g.n)
	w.removeCaller(g)
}

func (w *randomTest) checkLeft(e event) {
	g, n := e.who, e.who.where
	switch {
	case errors.Is(e.err, context.Canceled):
		w.check(g.gone, "%s: %v", n.name, e.err)
	case errors.Is(e.err, limiter.ErrLimited):
		most := n.most()
		if n.full != nil && n.full(e.at, toleratedDelay) {
			break
		}
		w.check(g.n > most || g.until == e.at, "%s: a caller leaves at %s whose time is up at %s: %v", n.name, e.at, g.until, e.err)
		if n.queue[0] == g && !n.busy() && g.n <= most {
			room := n.room(e.at)
			w.check(room < float64(g.n)+roundingError, "%s: a caller is refused %d tokens of %v", n.name, g.n, room)
		}
	default:
		w.check(false, "%s: %v", n.name, e.err)
	}
	w.removeCaller(g)
}

func (w *randomTest) removeCaller(g *waitingCaller) {
	is := func(other *waitingCaller) bool { return other == g }
	g.where.queue = slices.DeleteFunc(g.where.queue, is)
	w.waitingCallers = slices.DeleteFunc(w.waitingCallers, is)
}
