package limiter

import (
	"sync/atomic"
	"time"
)

// Reservation is the right to act later with tokens taken now. Its Result says whether the tokens
// were reserved. To act, wait for Delay first. To give up the right, call Cancel.
type Reservation struct {
	Result

	// Delay is how long to wait before acting, from the time of the reservation; 0 means at once.
	Delay time.Duration

	bucket    *TokenBucket
	state     *bucketState
	n         int
	due       time.Duration // the time to act
	promise                 // of this reservation
	before    promise       // the last promise before it
	cancelled atomic.Bool
}

// promise is a reservation of tokens that are not yet in the bucket.
type promise struct {
	end    int64  // the position at which the bucket is full, unless more tokens are taken
	serial uint64 // the number of the reservation, or 0 for none
}

// Reserve takes n tokens now, even if they are added to the bucket only later, up to maxWait from
// now. Later requests wait until those tokens are added. Reserve takes nothing if they would be
// added later than that, if a caller waits in the queue, or during a Hold.
func (b *TokenBucket) Reserve(n int, maxWait time.Duration) *Reservation {
	return b.reserveAt(time.Since(b.epoch), n, maxWait)
}

// Cancel gives back the tokens of the reservation, except those that are promised to later
// reservations. It reports whether it did so. It does nothing if the time to act has passed, or if
// the reservation was cancelled before. To give back tokens after that time, use Refund.
func (r *Reservation) Cancel() bool {
	return r.OK && r.cancelAt(time.Since(r.bucket.epoch))
}

func (b *TokenBucket) reserveAt(at time.Duration, n int, maxWait time.Duration) *Reservation {
	r := &Reservation{bucket: b, n: n}
	if b.queue.waitingTokens.Load() != 0 {
		r.Result = b.peekAt(at, 0, n)
		r.OK = false
		return r
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	r.state, r.serial = b.state.Load(), b.serial+1
	if r.state.reserve(r, at, max(maxWait, 0)); r.OK {
		b.serial++
	}
	return r
}

// reserve fills in the reservation. The caller holds the lock of the bucket, so the state is not
// replaced.
func (s *bucketState) reserve(r *Reservation, at, maxWait time.Duration) {
	if uint(r.n) > s.counted || s.counted == 0 {
		r.due = at
		s.predict(&r.Result, at, 0, r.n)
		return
	}
	at = s.clamp(at)
	now, held := s.units(at), s.hold.remaining(at)
	for {
		old := s.full.Load()
		start := s.start(max(old, s.hold.floor), now)
		r.end = start + s.cost*int64(r.n)
		delay := s.until(r.end-s.capacity, at)
		if delay == Never || delay > maxWait || held > 0 {
			s.refuse(&r.Result, at, start, r.end)
			if r.RetryAfter < Never {
				r.RetryAfter = max(r.RetryAfter-maxWait, held)
			}
			return
		}
		if s.full.CompareAndSwap(old, r.end) {
			s.allow(&r.Result, at, r.end)
			r.Delay, r.due = delay, at+delay
			if r.before = s.lastPromise; delay > 0 && r.end > s.lastPromise.end {
				s.lastPromise = r.promise
			}
			return
		}
	}
}

func (r *Reservation) cancelAt(at time.Duration) bool {
	if at > r.due || r.cancelled.Swap(true) {
		return false
	}
	b := r.bucket
	b.mu.Lock()
	s, end, before := r.state, r.end, r.before
	if s.counted == 0 { // it took nothing
		b.mu.Unlock()
		return true
	}
	for ; s.next != nil; s = s.next {
		end, before.end = s.convertToNext(end), s.convertToNext(before.end)
	}
	back := s.cost * int64(r.n)
	if r.serial != b.serial {
		back -= s.promisedAfter(end, at)
	}
	s.credit(back)
	if s.lastPromise.serial == r.serial {
		s.lastPromise = before
	}
	b.mu.Unlock()
	b.queue.wakeFirst()
	return true
}

// promisedAfter returns the units between end and the last promise. They are promised to later
// reservations, so a cancelled one must not give them back. The rule is that of
// golang.org/x/time/rate, with one exception: a reservation that is made later for an earlier time
// does not replace a promise that is still to be kept.
func (s *bucketState) promisedAfter(end int64, at time.Duration) int64 {
	return max(s.lastPromise.end-max(end, s.units(s.clamp(at))+s.capacity), 0)
}

// credit gives back units. The caller holds the lock of the bucket, so the state is not replaced.
func (s *bucketState) credit(units int64) {
	for units > 0 {
		old := s.full.Load()
		if s.full.CompareAndSwap(old, max(old-units, alwaysFull)) {
			return
		}
	}
}
