package limiter

import (
	"math/bits"
	"time"
)

// The bounds of positions, chosen so that no sum of a time, a bucket and a request overflows.
const (
	lastPosition  = 1<<62 - 1
	firstPosition = -1 << 61
	maxCapacity   = 1<<60 - 1 // of a bucket, in units
)

// scale converts times and tokens to one unit without losing a part of a token.
//
// If the interval between two tokens is a whole number of nanoseconds, the unit is the nanosecond.
// Otherwise the errors of a rounded interval would add up. So the interval is not rounded, and the
// time is converted instead: a token costs a power of two units, and a nanosecond is worth between
// one and two units (less only for buckets of many slow tokens). Each reading of the time is
// rounded by itself, so rounding errors do not add up.
type scale struct {
	cost  int64         // units per token
	plain bool          // the unit is the nanosecond
	up    fixedPoint    // units per nanosecond, rounded up by less than 2^-64
	down  fixedPoint    // nanoseconds per unit, rounded down by less than 2^-64
	slack int64         // how late a request may be, in units, without losing that time
	first time.Duration // earlier times count as this one
	last  time.Duration // later times count as this one
	end   int64         // the position of last
}

// newScale returns the scale for a valid, finite rate and a bucket of burst tokens.
func newScale(r Rate, burst int) scale {
	events, period := r.Ratio()
	room := maxCapacity / int64(burst)
	if token := int64(period) / events; int64(period)%events == 0 && token <= room {
		return scale{cost: token, plain: true, first: firstPosition, last: lastPosition, end: lastPosition}
	}
	worth, cost := uint64(events), int64(1) // units and nanoseconds of a period
	for worth < uint64(period) && cost <= room/2 {
		worth, cost = worth*2, cost*2
	}
	s := scale{cost: cost, up: fraction(worth, uint64(period), true), down: fraction(uint64(period), worth, false)}
	if s.up.whole == 1 && cost > 1 {
		// without it, requests at exactly the rate, rounded up to nanoseconds, would come too early
		// after a late request
		s.slack = 1
	}
	s.first = time.Duration(firstPosition / (s.up.whole + 1))
	s.last = time.Duration(lastPosition / (s.up.whole + 1))
	s.end = s.up.times(int64(s.last))
	return s
}

// clamp returns the nearest time within the life of a limiter.
func (s *scale) clamp(at time.Duration) time.Duration {
	return min(max(at, s.first), s.last)
}

// units returns the position of a clamped time, rounded down.
func (s *scale) units(at time.Duration) int64 {
	if s.plain {
		return int64(at)
	}
	return s.up.times(int64(at))
}

// until returns the time from at to the first time whose position is u or later: 0 if at is such a
// time, Never if there is none.
func (s *scale) until(u int64, at time.Duration) time.Duration {
	if s.plain && u <= lastPosition {
		return max(time.Duration(u)-at, 0)
	}
	return s.untilConverted(u, at) // a separate function, so that until is inlined
}

func (s *scale) untilConverted(u int64, at time.Duration) time.Duration {
	switch {
	case u > s.end:
		return Never
	case s.up.whole == 0 && u <= s.units(at):
		return 0
	}
	return max(time.Duration(s.timeOf(u))-at, 0)
}

// timeOf returns the first time whose position is u or later. A multiplication finds that time if a
// unit is shorter than a nanosecond. For longer units, timeOf divides, because a multiplication
// would not be exact.
func (s *scale) timeOf(u int64) int64 {
	if s.up.whole == 0 {
		return s.up.quotient(u)
	}
	at := s.down.times(u)
	for s.up.times(at) < u { // at most twice, because down is rounded
		at++
	}
	return at
}

// tokens returns the number of whole tokens in units, or 0 if units is negative.
func (s *scale) tokens(units int64) int {
	if units < s.cost {
		return 0 // usual for a refusal; the division takes as long as the rest of the function
	}
	return int(units / s.cost)
}

// fixedPoint is a number of at least 0 with 64 binary places.
type fixedPoint struct {
	whole int64
	part  uint64
}

// fraction returns a/b.
func fraction(a, b uint64, roundUp bool) fixedPoint {
	part, rest := bits.Div64(a%b, 0, b)
	f := fixedPoint{whole: int64(a / b), part: part}
	if roundUp && rest > 0 {
		if f.part++; f.part == 0 {
			f.whole++
		}
	}
	return f
}

// times returns x·f, rounded down.
func (f fixedPoint) times(x int64) int64 {
	high, _ := bits.Mul64(uint64(x), f.part)
	high -= f.part & uint64(x>>63) // corrects the unsigned product for a negative x
	return x*f.whole + int64(high)
}

// quotient returns x/f, rounded up, for an f below 1 and a quotient that fits.
func (f fixedPoint) quotient(x int64) int64 {
	q, rest := bits.Div64(uint64(max(x, -x)), 0, f.part)
	switch {
	case x < 0:
		return -int64(q)
	case rest > 0:
		return int64(q) + 1
	}
	return int64(q)
}

// product returns a·b for numbers of at least 0, or limit if that is less.
func product(a, b, limit int64) int64 {
	high, low := bits.Mul64(uint64(a), uint64(b))
	if high > 0 || low > uint64(limit) {
		return limit
	}
	return int64(low)
}

// proportion returns x·a/b, rounded down, limited to ±lastPosition.
func proportion(x, a, b int64) int64 {
	high, low := bits.Mul64(uint64(max(x, -x)), uint64(a))
	quotient, rest := uint64(lastPosition), uint64(0)
	if high < uint64(b) {
		quotient, rest = bits.Div64(high, low, uint64(b))
	}
	switch size := int64(min(quotient, lastPosition)); {
	case x >= 0:
		return size
	case rest > 0:
		return -size - 1
	default:
		return -size
	}
}
