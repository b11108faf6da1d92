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
	end       int64         // when the bucket would be full if nothing followed
	cancelled atomic.Bool
}

// Reserve takes n tokens that may be there only later, up to limit from now. Where it
// would take longer (or for ever, or somebody waits in the queue) nothing is taken. What is reserved
// is owed by those who come after.
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
	if ahead := b.line.ahead.Load(); ahead != 0 && !b.barge {
		b.after(&r.Result, at, ahead, n)
		stepBack(&r.Result, n)
		r.OK = false
		return r
	}
	for r.terms = b.terms.Load(); !r.terms.reserve(r, at, max(limit, 0)); r.terms = b.current() {
	}
	return r
}

// reserve fills in the reservation. It reports false where the terms have been replaced.
func (s *terms) reserve(r *Reservation, at, limit time.Duration) bool {
	if uint(r.n) > s.usual || s.usual == 0 {
		r.due = at
		return s.after(&r.Result, at, 0, r.n)
	}
	at = s.clamp(at)
	now := s.units(at)
	for {
		old := s.full.Load()
		if old == replaced {
			return false
		}
		start := s.start(old, now)
		r.end = start + s.cost*int64(r.n)
		r.Delay = s.until(r.end-s.capacity, at)
		if r.Delay == Never || r.Delay > limit {
			s.refused(&r.Result, at, start, r.end)
			if r.Delay = 0; r.RetryAfter < Never {
				r.RetryAfter -= limit
			}
			return true
		}
		if s.full.CompareAndSwap(old, r.end) {
			s.granted(&r.Result, at, r.end)
			r.due = at + r.Delay
			return true
		}
	}
}

func (r *Reservation) cancel(at time.Duration) bool {
	if at > r.due || r.cancelled.Swap(true) {
		return false
	}
	b := r.bucket
	b.mu.Lock()
	s, end := r.terms, r.end
	for ; s.next != nil; s = s.next {
		end = s.next.carry(&s.limits, end, s.ended)
	}
	s.unreserve(end, at, r.n)
	b.mu.Unlock()
	b.line.poke()
	return true
}

// unreserve gives n tokens back but for those that were charged beyond end and are still to
// come: these are promised for times that have been counted from there.
func (s *terms) unreserve(end int64, at time.Duration, n int) {
	end = max(end, s.units(s.clamp(at))+s.capacity)
	for {
		old := s.full.Load()
		back := max(s.cost*int64(n)-max(old-end, 0), 0)
		if s.full.CompareAndSwap(old, max(old-back, always)) {
			return
		}
	}
}
