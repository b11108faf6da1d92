package limiter

import (
	"math/bits"
	"time"
)

// Bounds on what a scale counts, such that no sum of a time, a bucket and a request overflows.
const (
	latest      = 1<<62 - 1 // the last position in time
	earliest    = -1 << 61  // and the first
	maxCapacity = 1<<60 - 1 // a bucket holds at most this
)

// scale counts time and tokens in one unit, without ever losing a part of one.
//
// Where a token takes a whole number of nanoseconds, the unit is the nanosecond. For other
// rates rounding the interval would drift, so it is the time that is converted: a token costs
// a power of two units, a nanosecond is worth between one and two of them (less only
// for buckets of many slow tokens), and what rounding there is happens anew at each reading.
type scale struct {
	cost  int64         // units a token costs
	plain bool          // whether the unit is the nanosecond
	up    fixed         // units a nanosecond is worth, rounded up by less than 2^-64
	down  fixed         // nanoseconds a unit is worth, rounded down likewise
	slack int64         // units by which a caller may be late without losing them, being within the nanosecond
	first time.Duration // the first time; all before is the same
	last  time.Duration // and the last; all beyond is the same
	end   int64         // the position of last
}

// newScale makes the scale for a valid, finite rate and a bucket of burst tokens.
func newScale(r Rate, burst int) scale {
	events, period := r.Ratio()
	room := maxCapacity / int64(burst)
	if token := int64(period) / events; int64(period)%events == 0 && token <= room {
		return scale{cost: token, plain: true, first: earliest, last: latest, end: latest}
	}
	worth, cost := uint64(events), int64(1) // as many units come in as many nanoseconds as the period has
	for worth < uint64(period) && cost <= room/2 {
		worth, cost = worth*2, cost*2
	}
	s := scale{cost: cost, up: fraction(worth, uint64(period), true), down: fraction(uint64(period), worth, false)}
	if s.up.whole == 1 && cost > 1 {
		s.slack = 1 // else callers at the exact cadence, rounded up to nanoseconds, would come early once they had come late
	}
	s.first = time.Duration(earliest / (s.up.whole + 1))
	s.last = time.Duration(latest / (s.up.whole + 1))
	s.end = s.up.times(int64(s.last))
	return s
}

// clamp keeps a time within the life of a limiter.
func (s *scale) clamp(at time.Duration) time.Duration {
	return min(max(at, s.first), s.last)
}

// units is the position of a clamped time, rounded down.
func (s *scale) units(at time.Duration) int64 {
	if s.plain {
		return int64(at)
	}
	return s.up.times(int64(at))
}

// until is the time from at to the first time whose position is u or beyond: 0 where
// at itself is beyond, Never where no time is.
func (s *scale) until(u int64, at time.Duration) time.Duration {
	if u > s.end {
		return Never
	}
	if !s.plain {
		if s.up.whole == 0 && u <= s.units(at) {
			return 0
		}
		u = s.when(u)
	}
	return max(time.Duration(u)-at, 0)
}

// when is the first time whose position is u or beyond. Where a unit is shorter than a nanosecond it is
// found by multiplication, where it is longer that would not be exact.
func (s *scale) when(u int64) int64 {
	if s.up.whole == 0 {
		return s.up.quotient(u)
	}
	at := s.down.times(u)
	for s.up.times(at) < u { // at most twice: down errs on one side by less than that
		at++
	}
	return at
}

// tokens is how many whole tokens fit into a number of units, 0 where that is below 0.
func (s *scale) tokens(units int64) int {
	if units < s.cost {
		return 0 // the usual case of a refusal; a division costs as much as all the rest
	}
	return int(units / s.cost)
}

// fixed is a number of at least 0 with 64 binary places.
type fixed struct {
	whole int64
	part  uint64
}

// fraction is a/b.
func fraction(a, b uint64, roundUp bool) fixed {
	part, rest := bits.Div64(a%b, 0, b)
	f := fixed{whole: int64(a / b), part: part}
	if roundUp && rest > 0 {
		if f.part++; f.part == 0 {
			f.whole++
		}
	}
	return f
}

// times is x·f, rounded down.
func (f fixed) times(x int64) int64 {
	high, _ := bits.Mul64(uint64(x), f.part)
	high -= f.part & uint64(x>>63) // as if x were signed
	return x*f.whole + int64(high)
}

// quotient is x/f, rounded up, for f below 1 and a quotient that fits.
func (f fixed) quotient(x int64) int64 {
	q, rest := bits.Div64(uint64(max(x, -x)), 0, f.part)
	switch {
	case x < 0:
		return -int64(q)
	case rest > 0:
		return int64(q) + 1
	}
	return int64(q)
}

// product is a·b for numbers of at least 0, or limit where that is less.
func product(a, b, limit int64) int64 {
	high, low := bits.Mul64(uint64(a), uint64(b))
	if high > 0 || low > uint64(limit) {
		return limit
	}
	return int64(low)
}

// proportion is x·a/b rounded down, or as near to it as latest.
func proportion(x, a, b int64) int64 {
	high, low := bits.Mul64(uint64(max(x, -x)), uint64(a))
	quotient, rest := uint64(latest), uint64(0)
	if high < uint64(b) {
		quotient, rest = bits.Div64(high, low, uint64(b))
	}
	switch size := int64(min(quotient, latest)); {
	case x >= 0:
		return size
	case rest > 0:
		return -size - 1
	default:
		return -size
	}
}
