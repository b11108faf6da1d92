package weirhttp

import (
	"math"
	"slices"
	"time"

	"github.com/weir-go/weir/limiter"
)

// windowLog remembers what one key has taken in a window, as spans of time. Times are nanoseconds.
type windowLog struct {
	spans []span // the oldest first
	used  int64  // the sum over all spans
}

// span is the number of requests from first to last. All n requests count until last is a window
// ago. So a request counts too long, but by at most last - first.
type span struct{ first, last, n int64 }

// spansPerWindow is the least number of spans that a full window is divided into.
const spansPerWindow = 16

// windowLimit is the Limit and Window of a Policy.
type windowLimit struct{ limit, window int64 }

// spanWidth returns how long a span may be. Up to spansPerWindow requests have a span each.
func (c windowLimit) spanWidth() int64 {
	if c.limit <= spansPerWindow {
		return 0
	}
	return c.window / spansPerWindow
}

// take takes n at the time, all or none.
func (l *windowLog) take(c windowLimit, at int64, n int) limiter.Result {
	now := l.expire(c, at)
	if n > 0 && int64(n) <= c.limit-l.used {
		l.add(c, now, int64(n))
		return l.result(c, at, 0)
	}
	return l.result(c, at, n)
}

// peek returns whether take would succeed, and takes nothing.
func (l *windowLog) peek(c windowLimit, at int64, n int) limiter.Result {
	l.expire(c, at)
	if n > 0 && int64(n) <= c.limit-l.used {
		n = 0
	}
	return l.result(c, at, n)
}

// expire drops the spans that no longer count. It returns the time, or the latest time of the log
// if that is later. So a clock that goes back does not allow more requests.
func (l *windowLog) expire(c windowLimit, at int64) int64 {
	if len(l.spans) > 0 {
		at = max(at, l.spans[len(l.spans)-1].last)
	}
	gone := 0
	for gone < len(l.spans) && at-l.spans[gone].last >= c.window {
		l.used -= l.spans[gone].n
		gone++
	}
	l.spans = l.spans[:copy(l.spans, l.spans[gone:])]
	return at
}

func (l *windowLog) add(c windowLimit, at, n int64) {
	l.used += n
	if i := len(l.spans) - 1; i >= 0 && at-l.spans[i].first <= c.spanWidth() {
		l.spans[i].last, l.spans[i].n = at, l.spans[i].n+n
		return
	}
	l.spans = append(l.spans, span{first: at, last: at, n: n})
}

// refund gives back n that were taken at the time. If no span has that time, they are subtracted
// from the oldest spans. So requests may count longer than they should, but not shorter.
func (l *windowLog) refund(at, n int64) {
	for i := len(l.spans) - 1; i >= 0 && n > 0; i-- {
		if s := &l.spans[i]; s.first <= at && at <= s.last {
			n -= l.reduce(s, n)
		}
	}
	for i := 0; i < len(l.spans) && n > 0; i++ {
		n -= l.reduce(&l.spans[i], n)
	}
	l.spans = slices.DeleteFunc(l.spans, func(s span) bool { return s.n == 0 })
}

func (l *windowLog) reduce(s *span, n int64) (by int64) {
	by = min(n, s.n)
	s.n -= by
	l.used -= by
	return by
}

// result returns the state of the log for a refused request for n, or for an allowed one if n is 0.
func (l *windowLog) result(c windowLimit, at int64, n int) limiter.Result {
	r := limiter.Result{OK: n == 0, Limit: int(c.limit), Remaining: int(max(c.limit-l.used, 0))}
	if last := len(l.spans) - 1; last >= 0 {
		r.ResetAfter = time.Duration(l.spans[last].last + c.window - at)
	}
	switch {
	case n == 0:
	case n < 0 || int64(n) > c.limit:
		r.RetryAfter = limiter.Never
	default:
		r.RetryAfter = l.untilExpired(c, at, l.used+int64(n)-c.limit)
	}
	return r
}

// untilExpired returns the time until n have expired, at least 1ns.
func (l *windowLog) untilExpired(c windowLimit, at, n int64) time.Duration {
	for _, s := range l.spans {
		if n -= s.n; n <= 0 {
			return time.Duration(max(s.last+c.window-at, 1))
		}
	}
	return 1
}

// untilNext returns the time until the oldest span expires, 0 if there is none.
func (l *windowLog) untilNext(c windowLimit, at int64) time.Duration {
	if len(l.spans) == 0 {
		return 0
	}
	return time.Duration(l.spans[0].last + c.window - at)
}

// isIdle reports whether nothing counts any more.
func (l *windowLog) isIdle(c windowLimit, at int64) bool {
	return len(l.spans) == 0 || at-l.spans[len(l.spans)-1].last >= c.window
}

// boundedOffset returns the time since an epoch, bounded so that sums with a window do not
// overflow.
func boundedOffset(at, epoch time.Time) int64 {
	return min(max(int64(at.Sub(epoch)), math.MinInt64/4), math.MaxInt64/4)
}
