package limiter

import (
	"math"
	"time"
)

// limits is a rate and a burst in the units of a scale.
type limits struct {
	scale
	capacity int64 // burst, in units
	// burst, or 0 if nothing is counted because the rate is unlimited or the burst is Off
	counted uint
	burst   int
}

// newLimits returns the limits for a valid rate. A burst of 0 means the default, and Off means no
// tokens.
func newLimits(r Rate, burst int) limits {
	switch {
	case r == Unlimited():
		return limits{burst: math.MaxInt}
	case burst == Off:
		return limits{}
	case burst == 0:
		burst = r.tokensPerSecond()
	}
	l := limits{scale: newScale(r, burst), burst: burst, counted: uint(burst)}
	l.capacity = l.cost * int64(burst)
	return l
}

// period returns the time in which an empty bucket fills up, or 0 if nothing is counted.
func (l *limits) period() time.Duration {
	if l.counted == 0 {
		return 0
	}
	return l.until(l.units(0)+l.capacity, 0)
}

// start returns the position to which a request at now adds its cost. That position is now if the
// bucket is full by then, and otherwise the position full. It is the position full, too, if the
// bucket has become full at most slack before now.
func (l *limits) start(full, now int64) int64 {
	if full < now-l.slack {
		return now
	}
	return full
}

// allow fills in the answer to a request that moved full to a position.
func (l *limits) allow(r *Result, at time.Duration, full int64) {
	r.OK = true
	r.Limit = l.burst
	r.Remaining = l.tokens(l.units(at) + l.capacity - full)
	r.ResetAfter = l.until(full, at)
}

// refuse fills in the answer to a request that would move full from start to next.
func (l *limits) refuse(r *Result, at time.Duration, start, next int64) {
	r.Limit = l.burst
	r.Remaining = l.tokens(l.units(at) + l.capacity - start)
	r.RetryAfter = l.until(next-l.capacity, at)
	r.ResetAfter = l.until(start, at)
}

// peek fills in the answer to a request for n tokens if ahead other tokens were taken first. The
// bucket is full at the position full and held by h. peek takes nothing.
func (l *limits) peek(r *Result, at time.Duration, full int64, h hold, ahead int64, n int) {
	if l.counted == 0 {
		*r = Result{OK: true, Limit: l.burst, Remaining: l.burst}
	} else {
		l.peekCounted(r, l.clamp(at), max(full, h.floor), ahead, n)
	}
	if wait := h.remaining(at); wait > 0 {
		r.OK, r.Remaining = false, 0
		r.RetryAfter, r.ResetAfter = max(r.RetryAfter, wait), max(r.ResetAfter, wait)
	}
	if n < 0 || n > l.burst {
		r.OK, r.RetryAfter = false, Never
	}
}

// peekCounted does the work of peek if the limit counts tokens.
func (l *limits) peekCounted(r *Result, at time.Duration, full, ahead int64, n int) {
	now := l.units(at)
	start := max(full, now)
	start += product(ahead, l.cost, replaced-max(start, 0))
	next := start + l.cost*int64(min(max(n, 0), l.burst))
	if next <= now+l.capacity {
		l.allow(r, at, start)
	} else {
		l.refuse(r, at, start, next)
	}
}

// takeFrom fills in the answer to a request for n tokens from a bucket that is full at a position
// and held by h, and returns the new position.
func (l *limits) takeFrom(r *Result, at time.Duration, full int64, h hold, n int) int64 {
	if uint(n)-1 >= l.counted {
		l.peek(r, at, full, h, 0, n)
		return full
	}
	at = l.clamp(at)
	now := l.units(at)
	start := l.start(max(full, h.floor), now)
	next := start + l.cost*int64(n)
	if next > now+l.capacity {
		l.refuse(r, at, start, next)
		return full
	}
	l.allow(r, at, next)
	return next
}

// returnable returns how many units of n of the tokens in back can be given back at a time.
// refunded counts all units that were ever given back.
//
// A token occupies the units between two positions, in which a bucket without that token would have
// stayed emptier than it was, or stayed full. The time that has passed by now has filled the bucket
// that far in either case, so only the units from now on are given back. Refunds since the take
// have moved the tokens taken later to earlier positions, by refunded-back.refunded at most. But no
// token lies before the position of the time at which it was taken.
func (l *limits) returnable(back taken, n int, refunded int64, at time.Duration) int64 {
	if l != back.limits { // the rate, the burst or a hold began after the take
		return 0
	}
	all := product(int64(back.n), l.cost, maxCapacity)
	end := max(l.units(l.clamp(back.at))+all, back.end-(refunded-back.refunded))
	least := end - l.units(l.clamp(at))
	return min(max(least, 0), product(int64(n), l.cost, maxCapacity))
}

// convert returns the position that stands for as many tokens in l as full stands for in old, at
// the time of a change.
func (l *limits) convert(old *limits, full int64, at time.Duration) int64 {
	switch {
	case l.counted == 0 || old.burst == math.MaxInt:
		return alwaysFull
	case old.burst == 0: // there were no tokens
		return l.units(l.clamp(at)) + l.capacity
	}
	tokens := old.capacity - max(full-old.units(old.clamp(at)), 0)
	tokens = proportion(tokens, l.cost, old.cost)
	now := l.units(l.clamp(at))
	return now + l.capacity - max(tokens, now-lastPosition)
}
