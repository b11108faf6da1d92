package weirhttp

import (
	"slices"
	"time"

	"github.com/weir-go/weir/limiter"
)

// windowLog remembers what one key has taken in a window, as spans of time. Times are nanoseconds,
// and no method gets an earlier time than was given before.
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
	l.expire(c, at)
	if n > 0 && int64(n) <= c.limit-l.used {
		l.add(c, at, int64(n))
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

// expire drops the spans that no longer count.
func (l *windowLog) expire(c windowLimit, at int64) {
	gone := 0
	for gone < len(l.spans) && at-l.spans[gone].last >= c.window {
		l.used -= l.spans[gone].n
		gone++
	}
	l.spans = l.spans[:copy(l.spans, l.spans[gone:])]
}

func (l *windowLog) add(c windowLimit, at, n int64) {
	l.used += n
	if i := len(l.spans) - 1; i >= 0 && at-l.spans[i].first <= c.spanWidth() {
		l.spans[i].last, l.spans[i].n = at, l.spans[i].n+n
		return
	}
	l.spans = append(l.spans, span{first: at, last: at, n: n})
}

// refund gives back n that were taken at the time. If no span has that time, they do not count any
// more.
func (l *windowLog) refund(at, n int64) {
	for i := range l.spans {
		if s := &l.spans[i]; s.first <= at && at <= s.last {
			n = min(n, s.n)
			s.n -= n
			l.used -= n
			if s.n == 0 {
				l.spans = slices.Delete(l.spans, i, i+1)
			}
			return
		}
	}
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

// untilNext returns the time until one more request can be made than now, 0 if all can. More than
// one span has to expire for it if the limit was lowered below what has been taken.
func (l *windowLog) untilNext(c windowLimit, at int64) time.Duration {
	if len(l.spans) == 0 {
		return 0
	}
	return l.untilExpired(c, at, max(l.used+1-c.limit, 1))
}

// isIdle reports whether nothing counts any more.
func (l *windowLog) isIdle(c windowLimit, at int64) bool {
	return len(l.spans) == 0 || at-l.spans[len(l.spans)-1].last >= c.window
}
