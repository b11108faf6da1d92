package limiter

import (
	"math"
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
	set         uint64       // which setting of the limits this is: see adminhook.Value
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
	_    [56]byte
}

// Special positions of full.
const (
	alwaysFull = firstPosition // the bucket is full at all times
	// replaced means that another state has replaced this one. It is larger than any real position.
	replaced = lastPosition + 1<<61
)

func newBucketState(r Rate, burst int) *bucketState {
	s := &bucketState{limits: newLimits(r, burst), hold: noHold, rate: r, configuredBurst: burst, lastPromise: promise{end: alwaysFull}, since: firstPosition}
	s.full.Store(alwaysFull)
	return s
}

// take takes n tokens, and returns the position at which the bucket is full then. current is false
// if the state has been replaced.
func (s *bucketState) take(r *Result, at time.Duration, n int) (full int64, current bool) {
	if uint(n)-1 >= s.counted {
		return 0, s.predict(r, at, 0, n)
	}
	at = s.clamp(at)
	now := s.units(at)
	// After a failed CompareAndSwap, adding 0 reads the word and fetches its cache line for writing
	// in one step.
	for old := s.full.Load(); ; old = s.full.Add(0) {
		if old == replaced {
			return 0, false
		}
		start := s.start(max(old, s.hold.floor), now)
		next := start + s.cost*int64(n)
		if next > now+s.capacity {
			s.refuse(r, at, start, next)
			return 0, true
		}
		if s.full.CompareAndSwap(old, next) {
			s.allow(r, at, next)
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
	now := s.units(s.clamp(at))
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
