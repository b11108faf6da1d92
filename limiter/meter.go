package limiter

import (
	"context"
	"math/bits"
	"sync"
	"time"
)

// meter is what the window limiters have in common: the lock, the clock and the queue
// around a rule by which permits are counted.
type meter struct {
	*statistics
	epoch    time.Time
	limit    int64
	window   time.Duration
	penalise bool
	line     queue

	mu   sync.Mutex
	rule rule
}

// rule is a way to count permits in a window: arithmetic on times that never go back, which the
// rule itself sees to.
type rule interface {
	// used moves the window to a time and returns how many permits count against the limit there.
	used(at time.Duration) int64
	// add counts n more at the time that was given last.
	add(n int64)
	// giveBack takes n off what counts, and so that no window can hold too many for it.
	giveBack(n int64)
	// counts reports whether what was taken at a time still counts.
	counts(at time.Duration) bool
	// due is the earliest time at which n permits can have been admitted in all, if that starts now.
	due(n int64) time.Duration
}

func newMeter(c FixedWindowConfig, epoch time.Time, r rule) *meter {
	m := &meter{epoch: epoch, limit: int64(c.Limit), window: c.Window, penalise: c.CountRefused, rule: r}
	m.line.max = c.MaxWaiters
	m.statistics = newStatistics(c.Name, c.Named, func() (Result, time.Duration) { return m.try(0), m.window })
	return m
}

// Take takes n permits, all or none. In shadow mode the result is OK also where none were taken, with the numbers of the
// refusal.
func (m *meter) Take(n int) (r Result) {
	m.take(&r, time.Since(m.epoch), n, m.penalise)
	m.count(&r, n)
	return r
}

// TakeAt is Take at a given time.
func (m *meter) TakeAt(t time.Time, n int) (r Result) {
	m.take(&r, t.Sub(m.epoch), n, m.penalise)
	m.count(&r, n)
	return r
}

// attempt is TakeAt that counts nothing in statistics.
func (m *meter) attempt(t time.Time, n int) (r Result) {
	m.take(&r, t.Sub(m.epoch), n, m.penalise)
	return r
}

func (m *meter) period() time.Duration { return m.window }

// Refund gives n permits back, as if they had never been taken: the oldest that still count,
// which can only err on the strict side. It is for permits that were taken a moment ago. Where they may have left the window
// meanwhile it would give back permits of others: then use RefundAt.
func (m *meter) Refund(n int) { m.giveBack(m.owed(n)) }

func (m *meter) giveBack(n int) { m.giveBackIf(n, func() bool { return true }) }

// RefundAt is Refund of permits that were taken at the time, and does nothing where these no longer count.
func (m *meter) RefundAt(taken time.Time, n int) {
	at := within(taken.Sub(m.epoch))
	m.giveBackIf(m.owed(n), func() bool { return m.rule.counts(at) })
}

func (m *meter) giveBackIf(n int, count func() bool) {
	if n < 1 {
		return
	}
	m.mu.Lock()
	if count() {
		m.rule.giveBack(int64(n))
	}
	m.mu.Unlock()
	m.line.poke()
}

// Wait takes n permits as soon as there are that many, and returns nil then. It is served, refused and
// given up as that of a [TokenBucket].
func (m *meter) Wait(ctx context.Context, n int) error { return m.WaitAtMost(ctx, n, Never) }

// WaitAtMost is Wait that gives up at once, with a *LimitedError, where it would take longer than maxWait.
func (m *meter) WaitAtMost(ctx context.Context, n int, maxWait time.Duration) error {
	if m.statistics != nil {
		return m.waitFor(ctx, m, n, maxWait)
	}
	return m.waitAtMost(ctx, n, maxWait)
}

func (m *meter) waitAtMost(ctx context.Context, n int, maxWait time.Duration) error {
	return m.line.wait(ctx, m, request{n: n, limit: maxWait})
}

func (m *meter) now() time.Duration { return time.Since(m.epoch) }

func (m *meter) take(r *Result, at time.Duration, n int, penalise bool) {
	if m.line.ahead.Load() != 0 {
		m.look(r, at, 0, n)
		return
	}
	m.decide(r, at, int64(n), penalise)
}

// look tells what Take answers once ahead other permits have been taken. It takes and counts nothing.
func (m *meter) look(r *Result, at time.Duration, ahead int64, n int) {
	waiting := m.line.ahead.Load()
	m.after(r, at, waiting+ahead, n)
	if waiting != 0 {
		stepBack(r, n)
	}
}

// try is Take that counts no refusal.
func (m *meter) try(n int) (r Result) {
	m.take(&r, m.now(), n, false)
	return r
}

func (m *meter) peek(r *Result, t time.Time, ahead int64, n int) {
	m.look(r, t.Sub(m.epoch), ahead, n)
}

func (m *meter) refuse(t time.Time, n int, waited bool) {
	m.countRefusal(m, t, n)
	if m.penalise && !waited {
		m.attempt(t, n)
	}
}

func (m *meter) watch(b bell)   { m.line.watch(b) }
func (m *meter) unwatch(b bell) { m.line.unwatch(b) }

func (m *meter) serve(r *Result, at time.Duration, n int) { m.decide(r, at, int64(n), false) }

func (m *meter) decide(r *Result, at time.Duration, n int64, penalise bool) {
	at = within(at)
	m.mu.Lock()
	defer m.mu.Unlock()
	left := m.limit - m.rule.used(at)
	if n > 0 && (n <= left || penalise && n <= m.limit) {
		m.rule.add(n)
	}
	m.describe(r, at, n <= left, n)
	if n < 0 || n > m.limit {
		r.OK, r.RetryAfter = false, Never
	}
}

// after tells how things stand for one who comes after ahead other permits.
func (m *meter) after(r *Result, at time.Duration, ahead int64, n int) {
	at = within(at)
	m.mu.Lock()
	defer m.mu.Unlock()
	total := ahead + int64(n)
	m.describe(r, at, total <= m.limit-m.rule.used(at), total)
	if n < 0 || int64(n) > m.limit {
		r.OK, r.RetryAfter = false, Never
	}
}

// describe is the answer to a request for n permits, given whether they are granted.
func (m *meter) describe(r *Result, at time.Duration, granted bool, n int64) {
	used := m.rule.used(at)
	r.OK = granted
	r.Limit = int(m.limit)
	r.Remaining = int(max(m.limit-used, 0))
	if used > 0 {
		r.ResetAfter = between(at, m.rule.due(m.limit))
	}
	if !granted {
		r.RetryAfter = between(at, m.rule.due(max(n, 0)))
	}
}

// within keeps a time where differences of two do not overflow.
func within(at time.Duration) time.Duration { return min(max(at, earliest), latest) }

// between is the time from one time to a later one: 0 where that is not later.
func between(from, to time.Duration) time.Duration {
	if to == Never {
		return Never
	}
	return max(to-from, 0)
}

// later is the time n spans after another, or Never.
func later(at time.Duration, n int64, window time.Duration) time.Duration {
	high, low := bits.Mul64(uint64(n), uint64(window))
	if high > 0 || low > uint64(latest) || at > latest-time.Duration(low) {
		return Never
	}
	return at + time.Duration(low)
}
