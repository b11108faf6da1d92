package weirhttp

import (
	"math"
	"slices"
	"time"

	"github.com/weir-go/weir/limiter"
)

// keyLog remembers what one key has taken in a window, as spans of time. Times are nanoseconds.
type keyLog struct {
	spans []span // the oldest first
	used  int64  // what all spans hold together
}

// span is what was taken from first to last. All of it counts until last is a window ago, which errs on
// the strict side by at most last - first.
type span struct{ first, last, n int64 }

// windowParts is into how many spans a window is divided at least.
const windowParts = 16

// terms are the limit of a log.
type terms struct{ limit, window int64 }

// width returns how long a span may be. Up to windowParts requests are remembered one by one.
func (c terms) width() int64 {
	if c.limit <= windowParts {
		return 0
	}
	return c.window / windowParts
}

// take takes n at a time, all or none.
func (l *keyLog) take(c terms, at int64, n int) limiter.Result {
	now := l.forget(c, at)
	if n > 0 && int64(n) <= c.limit-l.used {
		l.add(c, now, int64(n))
		return l.result(c, at, 0)
	}
	return l.result(c, at, n)
}

// forget drops the spans that no longer count, and returns the time, or the latest that was given
// before: a time that goes back allows nothing more.
func (l *keyLog) forget(c terms, at int64) int64 {
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

func (l *keyLog) add(c terms, at, n int64) {
	l.used += n
	if i := len(l.spans) - 1; i >= 0 && at-l.spans[i].first <= c.width() {
		l.spans[i].last, l.spans[i].n = at, l.spans[i].n+n
		return
	}
	l.spans = append(l.spans, span{first: at, last: at, n: n})
}

// refund gives back n that were taken at a time. If that time is not remembered they come from the
// oldest span, which errs on the strict side.
func (l *keyLog) refund(at, n int64) {
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

func (l *keyLog) reduce(s *span, n int64) (by int64) {
	by = min(n, s.n)
	s.n -= by
	l.used -= by
	return by
}

// result tells how things stand for a request for n more. It is OK for 0.
func (l *keyLog) result(c terms, at int64, n int) limiter.Result {
	r := limiter.Result{OK: n == 0, Limit: int(c.limit), Remaining: int(max(c.limit-l.used, 0))}
	if last := len(l.spans) - 1; last >= 0 {
		r.ResetAfter = time.Duration(l.spans[last].last + c.window - at)
	}
	switch {
	case n == 0:
	case n < 0 || int64(n) > c.limit:
		r.RetryAfter = limiter.Never
	default:
		r.RetryAfter = l.until(c, at, l.used+int64(n)-c.limit)
	}
	return r
}

// until returns how long until so much has left the log, and at least 1 ns.
func (l *keyLog) until(c terms, at, n int64) time.Duration {
	for _, s := range l.spans {
		if n -= s.n; n <= 0 {
			return time.Duration(max(s.last+c.window-at, 1))
		}
	}
	return 1
}

// idle reports whether nothing counts any more.
func (l *keyLog) idle(c terms, at int64) bool {
	return len(l.spans) == 0 || at-l.spans[len(l.spans)-1].last >= c.window
}

// next returns how long until something leaves the log, and 0 if it is empty.
func (l *keyLog) next(c terms, at int64) time.Duration {
	if len(l.spans) == 0 {
		return 0
	}
	return time.Duration(l.spans[0].last + c.window - at)
}

// offset returns the time since an epoch, cut so that sums with a window do not overflow.
func offset(at, epoch time.Time) int64 {
	return min(max(int64(at.Sub(epoch)), math.MinInt64/4), math.MaxInt64/4)
}
