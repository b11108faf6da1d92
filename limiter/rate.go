package limiter

import (
	"fmt"
	"math"
	"time"
)

// Rate is a number of events in a span of time. Rates are plain values, to be
// compared (with == too) and copied freely; the zero Rate means that none was given.
//
// A whole number of events is kept exactly. A fraction stands for the simplest
// ratio that is the same float64: 0.1 is one in ten, 1.0/3 is one in three.
// The fastest rate is four events a nanosecond. There is no slowest one: what
// would take longer than a limiter lives (73 years) just never happens.
type Rate struct {
	events float64
	per    time.Duration
}

// maxPerNano bounds a rate, so that a limiter can count for decades in one word.
const maxPerNano = 4

// unlimitedPer tells the rate that was meant to be infinite from one that became so by mistake.
const unlimitedPer time.Duration = -1

// PerSecond is n events a second.
func PerSecond(n float64) Rate { return Per(n, time.Second) }

// PerMinute is n events a minute.
func PerMinute(n float64) Rate { return Per(n, time.Minute) }

// PerHour is n events an hour.
func PerHour(n float64) Rate { return Per(n, time.Hour) }

// Every is one event each d.
func Every(d time.Duration) Rate { return Per(1, d) }

// Per is n events each d. Nothing is refused here: what makes no sense (n or d not
// above 0, NaN, infinity) is refused by the limiter that is given the rate.
func Per(n float64, d time.Duration) Rate {
	if n == 0 && d == 0 {
		d = unlimitedPer // a zero that was asked for is an error, not an absent rate
	}
	return Rate{events: n, per: d}
}

// Unlimited is the rate that never refuses: a limiter with it admits everything at once.
func Unlimited() Rate { return Rate{events: math.Inf(1), per: unlimitedPer} }

// Validate returns nil for a rate that a limiter can keep, and otherwise an error
// that says what is wrong. The zero Rate is refused.
func (r Rate) Validate() error {
	switch perNano := r.events / float64(r.per); {
	case r == Unlimited():
		return nil
	case r == Rate{}:
		return fmt.Errorf("limiter: Rate is unset, must be above 0")
	case !(r.events > 0) || r.per <= 0:
		return fmt.Errorf("limiter: Rate is %s, must be above 0", r)
	case math.IsInf(r.events, 0):
		return fmt.Errorf("limiter: Rate is %s, must be finite (or Unlimited)", r)
	case perNano > maxPerNano:
		return fmt.Errorf("limiter: Rate is %s, must be at most %d/ns (or Unlimited)", r, maxPerNano)
	}
	return nil
}

// perSecond is the rate as a number a second.
func (r Rate) perSecond() float64 {
	if r.per == time.Second {
		return r.events
	}
	return r.events / r.per.Seconds()
}

// second is the whole events of a second, rounded up and at least 1: the default for all that holds events.
func (r Rate) second() int {
	return max(1, int(min(math.Ceil(r.perSecond()), math.MaxInt)))
}

// Ratio returns a valid rate that is not Unlimited as whole events in a whole number of
// nanoseconds. One too slow for that becomes one event in as long as a Duration can say.
func (r Rate) Ratio() (events int64, period time.Duration) {
	for r.events >= math.MaxInt64 { // as a period of 2^63 ns or less has 2^65 events or fewer, half of either is as good
		r.events, r.per = r.events/2, r.per/2
	}
	p, q := simplest(r.events, math.MaxInt64/int64(r.per))
	if p == 0 {
		if slow := float64(r.per) / r.events; slow < math.MaxInt64 {
			return 1, time.Duration(slow)
		}
		return 1, math.MaxInt64
	}
	return p, time.Duration(q) * r.per
}

// simplest walks the continued fraction of x to the first p/q that is x when
// divided, or to the last one with q within bounds. x is above 0 and below 2^63.
func simplest(x float64, bound int64) (p, q int64) {
	const exact = 1 << 53 // up to here the division below is correctly rounded
	p, q = int64(x), 1
	oldP, oldQ := int64(1), int64(0)
	for rest := x - math.Floor(x); rest > 0 && float64(p)/float64(q) != x; {
		inverse := 1 / rest
		if inverse >= exact {
			break
		}
		a := int64(inverse)
		rest = inverse - math.Floor(inverse)
		if a > (min(bound, exact)-oldQ)/q || p > 0 && a > (exact-oldP)/p {
			break
		}
		p, oldP = a*p+oldP, p
		q, oldQ = a*q+oldQ, q
	}
	return p, q
}
