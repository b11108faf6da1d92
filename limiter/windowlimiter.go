package limiter

import (
	"context"
	"math/bits"
	"sync"
	"time"

	"github.com/weir-go/weir/internal/clock"
)

// windowLimiter implements FixedWindow, SlidingWindow and SlidingLog: it adds a lock, a clock and a
// queue of waiters to a windowCounter. Times are durations since epoch.
type windowLimiter struct {
	*statistics
	epoch        time.Time
	limit        int64
	window       time.Duration
	countRefused bool
	queue        waitQueue

	mu      sync.Mutex
	latest  time.Duration // the latest time of a request
	counter windowCounter
}

// windowCounter counts the tokens taken in a window. It never moves back in time.
type windowCounter interface {
	// advance moves the window forward to a time, or leaves it if it is already later. It returns
	// the number of tokens in the window.
	advance(at time.Duration) (used int64)
	// add counts n tokens at the time of the window.
	add(n int64)
	// refund removes n tokens from the count, the oldest first, so that no window exceeds the
	// limit.
	refund(n int64)
	// covers reports whether tokens taken at a time still count.
	covers(at time.Duration) bool
	// earliest returns the earliest time at which n tokens can be taken.
	earliest(n int64) time.Duration
	// renewed returns a counter of the same window that has counted nothing.
	renewed() windowCounter
}

func newWindowLimiter(c WindowConfig, epoch time.Time, counter windowCounter) *windowLimiter {
	l := &windowLimiter{epoch: epoch, limit: int64(c.Limit), window: c.Window, countRefused: c.CountRefused, latest: firstPosition, counter: counter}
	l.statistics = newStatistics(c.Name, c.Shadow, func() (Result, time.Duration) { return l.peek(time.Now(), 0, 0), l.window })
	l.queue.maxWaiters = c.MaxWaiters
	l.queue.keepStatistics(l.statistics)
	return l
}

// Take takes n tokens, or none if there are fewer. In shadow mode the result is always OK, with the
// numbers of the refusal if no tokens were taken.
func (l *windowLimiter) Take(n int) Result {
	return l.record(l.takeAt(time.Since(l.epoch), n, l.countRefused, clock.ReadTolerance), n)
}

// TakeAt is Take at the time t.
func (l *windowLimiter) TakeAt(t time.Time, n int) Result {
	return l.record(l.takeAt(t.Sub(l.epoch), n, l.countRefused, clock.GivenTolerance), n)
}

// Wait takes n tokens as soon as there are that many. See [TokenBucket.Wait].
func (l *windowLimiter) Wait(ctx context.Context, n int) error { return l.WaitAtMost(ctx, n, Never) }

// WaitAtMost is like Wait but returns a *[LimitedError] at once if the wait would exceed maxWait.
func (l *windowLimiter) WaitAtMost(ctx context.Context, n int, maxWait time.Duration) error {
	if l.isShadow() {
		return takeWithoutWait(ctx, l, n)
	}
	_, err := l.waitTaken(ctx, n, maxWait)
	return err
}

func (l *windowLimiter) waitTaken(ctx context.Context, n int, maxWait time.Duration) (taken, error) {
	return l.queue.wait(ctx, l, n, maxWait)
}

func (l *windowLimiter) period() time.Duration { return l.window }

// takeAt takes n tokens, unless callers wait in the queue. It does not count the request in the
// statistics.
func (l *windowLimiter) takeAt(at time.Duration, n int, countRefused bool, tolerance time.Duration) (r Result) {
	if l.queue.waitingTokens.Load() != 0 {
		return l.peekAt(at, 0, n)
	}
	return l.acquireAt(at, int64(n), countRefused, tolerance)
}

// peekAt returns the answer that Take(n) would give if ahead more tokens were taken before it. It
// respects the queue, as takeAt does. predictAt and acquireAt do not.
func (l *windowLimiter) peekAt(at time.Duration, ahead int64, n int) Result {
	waiting := l.queue.waitingTokens.Load()
	r := l.predictAt(at, waiting+ahead, n)
	if waiting != 0 {
		refuseBehindWaiters(&r, n)
	}
	return r
}

func (l *windowLimiter) acquire(n int) (Result, taken) {
	at := time.Since(l.epoch)
	r := l.acquireAt(at, int64(n), false, clock.ReadTolerance)
	return r, takenBy(r, at, n)
}

// acquireAt takes n tokens without regard to the queue.
func (l *windowLimiter) acquireAt(at time.Duration, n int64, countRefused bool, tolerance time.Duration) Result {
	at = clampTime(at)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.restart(at, tolerance)
	l.latest = max(l.latest, at)
	left := l.limit - l.counter.advance(at)
	if n > 0 && (n <= left || countRefused && n <= l.limit) {
		l.counter.add(n)
	}
	r := l.describe(at, n <= left, n)
	if n < 0 || n > l.limit {
		r.OK, r.RetryAfter = false, Never
	}
	return r
}

// restart empties the window if its clock is a new one: see clock.IsNew. The caller holds the lock.
func (l *windowLimiter) restart(at, tolerance time.Duration) bool {
	isNew := clock.IsNew(l.epoch, at, l.latest, tolerance)
	if isNew {
		l.latest, l.counter = at, l.counter.renewed()
	}
	return isNew
}

func (l *windowLimiter) restartIfNew(t time.Time, tolerance time.Duration) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.restart(clampTime(t.Sub(l.epoch)), tolerance)
}

func (l *windowLimiter) predict(ahead int64, n int) Result {
	return l.predictAt(time.Since(l.epoch), ahead, n)
}

// predictAt returns the answer that acquireAt would give if ahead more tokens were taken first. It
// takes nothing.
func (l *windowLimiter) predictAt(at time.Duration, ahead int64, n int) Result {
	at = clampTime(at)
	l.mu.Lock()
	defer l.mu.Unlock()
	total := ahead + int64(n)
	r := l.describe(at, total <= l.limit-l.counter.advance(at), total)
	if n < 0 || int64(n) > l.limit {
		r.OK, r.RetryAfter = false, Never
	}
	return r
}

// describe returns the answer to a request for n tokens. The caller holds the lock.
func (l *windowLimiter) describe(at time.Duration, ok bool, n int64) Result {
	used := l.counter.advance(at)
	r := Result{OK: ok, Limit: int(l.limit), Remaining: int(max(l.limit-used, 0))}
	if used > 0 {
		r.ResetAfter = timeUntil(l.counter.earliest(l.limit), at)
	}
	if !ok {
		r.RetryAfter = timeUntil(l.counter.earliest(max(n, 0)), at)
	}
	return r
}

func (l *windowLimiter) peek(t time.Time, ahead int64, n int) Result {
	return l.peekAt(t.Sub(l.epoch), ahead, n)
}

func (l *windowLimiter) tryTake(t time.Time, n int, c counting) (Result, taken) {
	at := t.Sub(l.epoch)
	r := l.takeAt(at, n, c == refusedToo && l.countRefused, clock.ReadTolerance)
	return r, takenBy(r, at, n)
}

// putBack gives back tokens that still count. Those that no longer count have left the window by
// themselves.
func (l *windowLimiter) putBack(_ time.Time, back taken, n int) taken { //nolint:unparam // implements giver
	l.mu.Lock()
	if l.counter.covers(clampTime(back.at)) {
		l.counter.refund(int64(back.use(n)))
	}
	l.mu.Unlock()
	l.queue.wakeFirst()
	return back
}

func (l *windowLimiter) refusedByJoint(t time.Time, n int, r Result, waited bool) {
	l.recordRefusal(r, n)
	if l.countRefused && !waited {
		l.takeAt(t.Sub(l.epoch), n, true, clock.GivenTolerance)
	}
}

func (l *windowLimiter) subscribe(w wakeup)   { l.queue.subscribe(w) }
func (l *windowLimiter) unsubscribe(w wakeup) { l.queue.unsubscribe(w) }

// clampTime returns the nearest time whose distance from any other such time does not overflow.
func clampTime(at time.Duration) time.Duration { return min(max(at, firstPosition), lastPosition) }

// timeUntil returns the time from now until at: 0 if at has passed, Never if at is Never.
func timeUntil(at, now time.Duration) time.Duration {
	if at == Never {
		return Never
	}
	return max(at-now, 0)
}

// addWindows returns the time n windows after at, or Never if that is too late.
func addWindows(at time.Duration, n int64, window time.Duration) time.Duration {
	high, low := bits.Mul64(uint64(n), uint64(window))
	if high > 0 || low > uint64(lastPosition) || at > lastPosition-time.Duration(low) {
		return Never
	}
	return at + time.Duration(low)
}
