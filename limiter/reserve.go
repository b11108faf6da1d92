package limiter

import (
	"sync/atomic"
	"time"
)

// Reservation is a right to act later, paid for now.
//
// Its Result says whether there is one and how things stand after it. To act, wait for
// Delay; to make way for others, Cancel.
type Reservation struct {
	Result

	// Delay is how long after the reservation its holder may act: 0 where at once.
	Delay time.Duration

	bucket    *TokenBucket
	terms     *terms
	n         int
	due       time.Duration // when the holder may act
	promise                 // what it was promised
	before    promise       // the last one before it that was still to come
	cancelled atomic.Bool
}

// promise is a right to tokens that are still to come.
type promise struct {
	end    int64  // the position at which the bucket would be full if nothing followed
	serial uint64 // of the reservation, 0 for none
}

// Reserve takes n tokens that may be there only later, up to limit from now. Where it
// would take longer (or for ever, or somebody waits in the queue, or the bucket is held) nothing is taken. What is
// reserved is owed by those who come after.
func (b *TokenBucket) Reserve(n int, limit time.Duration) *Reservation {
	return b.reserve(time.Since(b.epoch), n, limit)
}

// ReserveAt is Reserve at a given time.
func (b *TokenBucket) ReserveAt(t time.Time, n int, limit time.Duration) *Reservation {
	return b.reserve(t.Sub(b.epoch), n, limit)
}

// Cancel gives up the right to act, if the time for that has not come yet, and returns its tokens, but for those
// that later reservations have been promised. It reports whether it did; a second Cancel does nothing.
// (Whoever may act and does not gives tokens back by Refund.)
func (r *Reservation) Cancel() bool {
	return r.OK && r.cancel(r.bucket.now())
}

// CancelAt is Cancel at a given time.
func (r *Reservation) CancelAt(t time.Time) bool {
	return r.OK && r.cancel(t.Sub(r.bucket.epoch))
}

func (b *TokenBucket) reserve(at time.Duration, n int, limit time.Duration) *Reservation {
	r := &Reservation{bucket: b, n: n}
	if ahead := b.line.ahead.Load(); ahead != 0 {
		b.after(&r.Result, at, ahead, n)
		stepBack(&r.Result, n)
		r.OK = false
		return r
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	r.terms, r.serial = b.terms.Load(), b.serial+1
	if r.terms.reserve(r, at, max(limit, 0)); r.OK {
		b.serial++
	}
	return r
}

// reserve fills in the reservation. The bucket's lock is held, so the terms stay.
func (s *terms) reserve(r *Reservation, at, limit time.Duration) {
	if uint(r.n) > s.usual || s.usual == 0 {
		r.due = at
		s.after(&r.Result, at, 0, r.n)
		return
	}
	at = s.clamp(at)
	now, held := s.units(at), s.hold.left(at)
	for {
		old := s.full.Load()
		start := s.start(max(old, s.hold.floor), now)
		r.end = start + s.cost*int64(r.n)
		delay := s.until(r.end-s.capacity, at)
		if delay == Never || delay > limit || held > 0 {
			s.refused(&r.Result, at, start, r.end)
			if r.RetryAfter < Never {
				r.RetryAfter = max(r.RetryAfter-limit, held)
			}
			return
		}
		if s.full.CompareAndSwap(old, r.end) {
			s.granted(&r.Result, at, r.end)
			r.Delay, r.due = delay, at+delay
			if r.before = s.promised; delay > 0 && r.end > s.promised.end {
				s.promised = r.promise
			}
			return
		}
	}
}

func (r *Reservation) cancel(at time.Duration) bool {
	if at > r.due || r.cancelled.Swap(true) {
		return false
	}
	b := r.bucket
	b.mu.Lock()
	s, end, before := r.terms, r.end, r.before
	if s.usual == 0 { // it took nothing
		b.mu.Unlock()
		return true
	}
	for ; s.next != nil; s = s.next {
		end, before.end = s.carried(end), s.carried(before.end)
	}
	back := s.cost * int64(r.n)
	if r.serial != b.serial { // others have counted on it since
		back -= s.promisedSince(end, at)
	}
	s.credit(back)
	if s.promised.serial == r.serial {
		s.promised = before
	}
	b.mu.Unlock()
	b.line.poke()
	return true
}

// promisedSince is how much lies between end and what has been promised last: those who were promised tokens in that time
// count on it that nobody else gets these. The rule is that of golang.org/x/time/rate, but for which is the last: here
// a later promise of an earlier time does not make one forgotten that is still to be kept.
func (s *terms) promisedSince(end int64, at time.Duration) int64 {
	return max(s.promised.end-max(end, s.units(s.clamp(at))+s.capacity), 0)
}

// credit gives some units back. The bucket's lock is held, so the terms stay.
func (s *terms) credit(units int64) {
	for units > 0 {
		old := s.full.Load()
		if s.full.CompareAndSwap(old, max(old-units, always)) {
			return
		}
	}
}
