package limiter

import (
	"math"
	"time"
)

// limits are a rate and a burst, ready to count by.
type limits struct {
	scale
	capacity int64 // burst, in units
	usual    uint  // burst, but 0 where the rate is unlimited
	burst    int
}

// newLimits makes the limits for a valid rate; a burst of 0 means the default.
func newLimits(r Rate, burst int) limits {
	if r.IsUnlimited() {
		return limits{burst: math.MaxInt}
	}
	if burst == 0 {
		burst = r.second()
	}
	l := limits{scale: newScale(r, burst), burst: burst, usual: uint(burst)}
	l.capacity = l.cost * int64(burst)
	return l
}

// granted is the answer to a request after which the bucket is full at position full.
func (l *limits) granted(r *Result, at time.Duration, full int64) {
	r.OK = true
	r.Limit = l.burst
	r.Remaining = l.tokens(l.units(at) + l.capacity - full)
	r.ResetAfter = l.until(full, at)
}

// refused is the answer to a request that would move full from start to next.
func (l *limits) refused(r *Result, at time.Duration, start, next int64) {
	r.Limit = l.burst
	r.Remaining = l.tokens(l.units(at) + l.capacity - start)
	r.RetryAfter = l.until(next-l.capacity, at)
	r.ResetAfter = l.until(start, at)
}

// look tells, without taking anything, what a request for n would get of a bucket that is full at
// position full, once ahead other tokens have been handed out.
func (l *limits) look(r *Result, at time.Duration, full, ahead int64, n int) {
	if l.usual == 0 {
		*r = Result{OK: n >= 0, Limit: l.burst, Remaining: l.burst, RetryAfter: never(n < 0)}
		return
	}
	at = l.clamp(at)
	now := l.units(at)
	start := max(full, now)
	start += product(ahead, l.cost, replaced-max(start, 0))
	next := start + l.cost*int64(min(max(n, 0), l.burst))
	if next <= now+l.capacity {
		l.granted(r, at, start)
	} else {
		l.refused(r, at, start, next)
	}
	if n < 0 || n > l.burst {
		r.OK, r.RetryAfter = false, Never
	}
}

// carry is the position that means at a time as many tokens by l as full does by old.
func (l *limits) carry(old *limits, full int64, at time.Duration) int64 {
	if l.usual == 0 || old.usual == 0 {
		return always
	}
	level := old.capacity - max(full-old.units(old.clamp(at)), 0)
	level = min(proportion(level, l.cost, old.cost), l.capacity)
	now := l.units(l.clamp(at))
	return now + l.capacity - max(level, now-latest)
}

func never(yes bool) time.Duration {
	if yes {
		return Never
	}
	return 0
}
