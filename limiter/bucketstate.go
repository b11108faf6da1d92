package limiter

import (
	"math"
	"math/bits"
	"sync/atomic"
	"time"
)

// bucketState holds the limits of a bucket, and the one word in which the bucket counts. When the
// rate or the burst changes, a new bucketState replaces the old one as a whole, so that a request
// never sees a mix of both.
type bucketState struct {
	limits
	hold            hold
	rate            Rate
	configuredBurst int           // 0 means the default
	since           time.Duration // when the state was made, except that of a new bucket

	// Guarded by the lock of the bucket.
	set         uint64       // which setting of the limits this is: see view.Setting.Version
	next        *bucketState // the state that replaced this one
	replacedAt  time.Duration
	lastPromise promise
	promisedAt  time.Duration // when lastPromise was made

	// full is the position at which the bucket is full if no tokens are taken. At an earlier
	// position, the missing tokens are those that will be added between that position and full. The
	// padding gives full a cache line of its own, because writing it would otherwise evict the
	// limits from the caches of other cores.
	_    [56]byte
	full atomic.Int64

	// Guarded by the lock of the bucket.
	debt      int64         // the position at which the bucket was full after the last charge
	chargedAt time.Duration // the time of that charge
	_         [40]byte
}

// Special positions of full.
const (
	alwaysFull = firstPosition // the bucket is full at all times
	// replaced means that another state has replaced this one. It is larger than any real position.
	replaced = lastPosition + 1<<61
)

func newBucketState(r Rate, burst int) *bucketState {
	s := &bucketState{limits: newLimits(r, burst), hold: noHold, rate: r, configuredBurst: burst, lastPromise: promise{end: alwaysFull}, debt: alwaysFull, since: firstPosition}
	s.full.Store(alwaysFull)
	return s
}

// take takes n tokens, and returns the position at which the bucket is full then. If it takes none,
// full is above 0 if the state may be of a later time than at. current is false if the state has
// been replaced.
func (s *bucketState) take(r *Result, at time.Duration, n int) (full int64, current bool) {
	if uint(n)-1 >= s.counted {
		return 1, s.predict(r, at, 0, n)
	}
	at, now := s.position(at)
	// After a failed CompareAndSwap, adding 0 reads the word and fetches its cache line for writing
	// in one step.
	for old := s.full.Load(); ; old = s.full.Add(0) {
		if old == replaced {
			return 0, false
		}
		start := s.start(max(old, s.hold.floor), now)
		next := start + s.cost*int64(n)
		if next > now+s.capacity {
			s.describe(r, at, now, start)
			r.RetryAfter = s.until(next-s.capacity, at)
			return max(start-s.capacity-now, int64(s.since-at)), true
		}
		if s.full.CompareAndSwap(old, next) {
			s.describe(r, at, now, next)
			r.OK = true
			return next, true
		}
	}
}

// takeFast takes n tokens in the simple case: tokens are counted, there are enough of them, and the
// state has not been replaced. If it reports false, take decides.
func (s *bucketState) takeFast(at time.Duration, n int) bool {
	if uint(n)-1 >= s.counted {
		return false
	}
	_, now := s.position(at)
	for old := s.full.Load(); ; old = s.full.Add(0) {
		next := s.start(max(old, s.hold.floor), now) + s.cost*int64(n)
		if next > now+s.capacity { // also if the state has been replaced
			return false
		}
		if s.full.CompareAndSwap(old, next) {
			return true
		}
	}
}

// predict fills in the answer that take would give if ahead other tokens were taken first. It
// reports false if the state has been replaced.
func (s *bucketState) predict(r *Result, at time.Duration, ahead int64, n int) bool {
	full := s.full.Load()
	if full == replaced {
		return false
	}
	s.peek(r, at, full, s.hold, ahead, n)
	return true
}

// tokensAt returns the number of tokens at a time.
func (s *bucketState) tokensAt(full int64, at time.Duration) float64 {
	held := s.hold.remaining(at) > 0
	switch {
	case s.burst == 0, s.counted == 0 && held:
		return 0
	case s.counted == 0:
		return math.Inf(1)
	case !held:
		full = max(full, s.hold.floor)
	}
	tokens := float64(s.capacity-max(full-s.units(s.clamp(at)), 0)) / float64(s.cost)
	if held {
		return min(tokens, 0)
	}
	return tokens
}

// isAhead reports whether the state may be of a later time than at.
func (s *bucketState) isAhead(at time.Duration) bool {
	return at < s.since || s.counted > 0 && s.full.Load()-s.capacity > s.units(s.clamp(at))
}

// latest returns the latest time at which the bucket was used, as far as the state shows it: a
// request is allowed only if the bucket is full again within its capacity. The caller holds the
// lock of the bucket.
func (s *bucketState) latest() time.Duration {
	full := s.full.Load()
	switch {
	case s.counted == 0:
		return s.since
	case full <= s.lastPromise.end:
		return max(s.since, s.promisedAt)
	case full <= s.debt:
		return max(s.since, s.chargedAt)
	case s.plain:
		return max(s.since, time.Duration(full-s.capacity))
	}
	return max(s.since, time.Duration(s.timeOf(full-s.capacity)))
}

// convertToNext returns the position that stands for as many tokens in the next state as full
// stands for in this state.
func (s *bucketState) convertToNext(full int64) int64 {
	if s.next.limits == s.limits {
		return full
	}
	return s.next.convert(&s.limits, full, s.replacedAt)
}

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

// describe fills in the answer to a request at a time with the position now, when the bucket is
// full at the position full.
func (l *limits) describe(r *Result, at time.Duration, now, full int64) {
	r.Limit, r.Remaining = l.burst, 0
	if left := now + l.capacity - full; left >= l.cost { // otherwise the division is not needed
		r.Remaining = int(left / l.cost)
	}
	r.ResetAfter = l.until(full, at)
}

// peek fills in the answer to a request for n tokens if ahead other tokens were taken first. The
// bucket is full at the position full and held by h. peek takes nothing.
func (l *limits) peek(r *Result, at time.Duration, full int64, h hold, ahead int64, n int) {
	if l.counted == 0 {
		*r = Result{OK: true, Limit: l.burst, Remaining: l.burst}
	} else {
		l.peekCounted(r, at, max(full, h.floor), ahead, n)
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
	at, now := l.position(at)
	start := max(full, now)
	start += product(ahead, l.cost, replaced-max(start, 0))
	next := start + l.cost*int64(min(max(n, 0), l.burst))
	l.describe(r, at, now, start)
	if r.OK = next <= now+l.capacity; !r.OK {
		r.RetryAfter = l.until(next-l.capacity, at)
	}
}

// takeFrom fills in the answer to a request for n tokens from a bucket that is full at a position
// and held by h, and returns the new position.
func (l *limits) takeFrom(r *Result, at time.Duration, full int64, h hold, n int) int64 {
	if uint(n)-1 >= l.counted {
		l.peek(r, at, full, h, 0, n)
		return full
	}
	at, now := l.position(at)
	start := l.start(max(full, h.floor), now)
	next := start + l.cost*int64(n)
	if next > now+l.capacity {
		l.describe(r, at, now, start)
		r.RetryAfter = l.until(next-l.capacity, at)
		return full
	}
	l.describe(r, at, now, next)
	r.OK = true
	return next
}

// charged returns the position at which a bucket is full after n more tokens have been used, even
// if it does not have them. It was full at the position full, and is held by h. A debt is bounded
// by the life of the bucket, and is never paid then.
func (l *limits) charged(full int64, h hold, at time.Duration, n int) int64 {
	start := l.start(max(full, h.floor), l.units(l.clamp(at)))
	return start + product(int64(n), l.cost, max(lastPosition+l.capacity-start, 0))
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

// position returns the nearest time within the life of a limiter, and its position, rounded down.
func (s *scale) position(at time.Duration) (clamped time.Duration, position int64) {
	at = min(max(at, s.first), s.last)
	if s.plain {
		return at, int64(at)
	}
	return at, s.up.times(int64(at))
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
