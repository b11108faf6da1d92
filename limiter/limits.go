package limiter

import (
	"math"
	"time"
)

// limits are a rate and a burst, ready to count by.
type limits struct {
	scale
	capacity int64 // burst, in units
	usual    uint  // burst, but 0 where there is no counting: the rate is unlimited, or nothing is admitted
	burst    int
}

// newLimits makes the limits for a valid rate; a burst of 0 means the default, Off no tokens.
func newLimits(r Rate, burst int) limits {
	switch {
	case r == Unlimited():
		return limits{burst: math.MaxInt}
	case burst == Off:
		return limits{}
	case burst == 0:
		burst = r.second()
	}
	l := limits{scale: newScale(r, burst), burst: burst, usual: uint(burst)}
	l.capacity = l.cost * int64(burst)
	return l
}

// period is the time in which an empty bucket becomes full.
func (l *limits) period() time.Duration {
	if l.usual == 0 {
		return 0
	}
	return l.until(l.units(0)+l.capacity, 0)
}

// start is the position from which a request at now is counted, for a bucket that is full at position
// full: from there on where it is not full by now, and where it has only just become so.
func (l *limits) start(full, now int64) int64 {
	if full < now-l.slack {
		return now
	}
	return full
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
// position full and held by h, once ahead other tokens have been handed out.
func (l *limits) look(r *Result, at time.Duration, full int64, h hold, ahead int64, n int) {
	if l.usual == 0 {
		*r = Result{OK: true, Limit: l.burst, Remaining: l.burst}
	} else {
		l.lookAhead(r, l.clamp(at), max(full, h.floor), ahead, n)
	}
	if wait := h.left(at); wait > 0 {
		r.OK, r.Remaining = false, 0
		r.RetryAfter, r.ResetAfter = max(r.RetryAfter, wait), max(r.ResetAfter, wait)
	}
	if n < 0 || n > l.burst {
		r.OK, r.RetryAfter = false, Never
	}
}

// lookAhead is look where tokens are counted.
func (l *limits) lookAhead(r *Result, at time.Duration, full, ahead int64, n int) {
	now := l.units(at)
	start := max(full, now)
	start += product(ahead, l.cost, replaced-max(start, 0))
	next := start + l.cost*int64(min(max(n, 0), l.burst))
	if next <= now+l.capacity {
		l.granted(r, at, start)
	} else {
		l.refused(r, at, start, next)
	}
}

// decide answers a request for n of a bucket that is full at position full and held by h, and returns the position
// at which it is after that.
func (l *limits) decide(r *Result, at time.Duration, full int64, h hold, n int) int64 {
	if uint(n)-1 >= l.usual {
		l.look(r, at, full, h, 0, n)
		return full
	}
	at = l.clamp(at)
	now := l.units(at)
	start := l.start(max(full, h.floor), now)
	next := start + l.cost*int64(n)
	if next > now+l.capacity {
		l.refused(r, at, start, next)
		return full
	}
	l.granted(r, at, next)
	return next
}

// refund is the position at which a bucket is full after n tokens have been given back to it.
func (l *limits) refund(full int64, n int) int64 {
	return max(full-product(int64(n), l.cost, l.capacity), always)
}

// carry is the position that means at a time as many tokens by l as full does by old.
func (l *limits) carry(old *limits, full int64, at time.Duration) int64 {
	switch {
	case l.usual == 0 || old.burst == math.MaxInt:
		return always
	case old.burst == 0: // and so without a token
		return l.units(l.clamp(at)) + l.capacity
	}
	level := old.capacity - max(full-old.units(old.clamp(at)), 0)
	level = proportion(level, l.cost, old.cost)
	now := l.units(l.clamp(at))
	return now + l.capacity - max(level, now-latest)
}
