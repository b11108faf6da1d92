package limiter

import (
	"math"
	"sync/atomic"
	"time"
)

// terms are limits and the state that is counted by them: one word, and what it
// means. When the rate or the burst changes, new terms take their place whole, so that
// no request ever sees the one without the other.
type terms struct {
	limits
	hold   hold
	rate   Rate
	chosen int // the burst that was asked for, 0 for the default

	// Guarded by the bucket's lock.
	next     *terms // what took their place, and when
	ended    time.Duration
	promised promise

	// full is the position at which the bucket is full again, if nothing is taken. The tokens
	// missing at an earlier one are those that come between the two. It has a line of the cache for
	// itself: who writes it takes the limits from nobody, and no bucket is in its neighbour's way.
	_    [56]byte
	full atomic.Int64
	_    [56]byte
}

// Special states.
const (
	always   = earliest       // full at all times
	replaced = latest + 1<<61 // other terms hold now; no state is as far off
)

// newTerms makes the terms for a full bucket.
func newTerms(r Rate, burst int) *terms {
	s := &terms{limits: newLimits(r, burst), hold: unheld, rate: r, chosen: burst, promised: promise{end: always}}
	s.full.Store(always)
	return s
}

// take takes n tokens. It reports false where the terms have been replaced.
func (s *terms) take(r *Result, at time.Duration, n int) bool {
	if uint(n)-1 >= s.usual {
		return s.after(r, at, 0, n)
	}
	at = s.clamp(at)
	now := s.units(at)
	// After a lost race the word is read by adding nothing, which fetches it for writing at once.
	for old := s.full.Load(); ; old = s.full.Add(0) {
		if old == replaced {
			return false
		}
		start := s.start(max(old, s.hold.floor), now)
		next := start + s.cost*int64(n)
		if next > now+s.capacity {
			s.refused(r, at, start, next)
			return true
		}
		if s.full.CompareAndSwap(old, next) {
			s.granted(r, at, next)
			return true
		}
	}
}

// admit takes n tokens where that is simple; where it reports false, take knows more.
func (s *terms) admit(at time.Duration, n int) bool {
	if uint(n)-1 >= s.usual {
		return false
	}
	now := s.units(s.clamp(at))
	for old := s.full.Load(); ; old = s.full.Add(0) {
		next := s.start(max(old, s.hold.floor), now) + s.cost*int64(n)
		if next > now+s.capacity { // as for terms that have been replaced, which is beyond any time
			return false
		}
		if s.full.CompareAndSwap(old, next) {
			return true
		}
	}
}

// after is look at the present state. It reports false where the terms have been replaced.
func (s *terms) after(r *Result, at time.Duration, ahead int64, n int) bool {
	full := s.full.Load()
	if full == replaced {
		return false
	}
	s.look(r, at, full, s.hold, ahead, n)
	return true
}

// level is the number of tokens at a time.
func (s *terms) level(full int64, at time.Duration) float64 {
	switch {
	case s.burst == 0, s.usual == 0 && s.hold.left(at) > 0:
		return 0
	case s.usual == 0:
		return math.Inf(1)
	}
	now := s.units(s.clamp(at))
	owed := func(full int64) float64 { return float64(s.capacity-max(full-now, 0)) / float64(s.cost) }
	if s.hold.left(at) > 0 {
		return min(owed(full), 0)
	}
	return owed(max(full, s.hold.floor))
}

// carried is the position that means by the next terms as many tokens as full does by these.
func (s *terms) carried(full int64) int64 {
	if s.next.limits == s.limits {
		return full
	}
	return s.next.carry(&s.limits, full, s.ended)
}

// giveBack gives tokens back. It reports false where the terms have been replaced.
func (s *terms) giveBack(n int) bool {
	for {
		old := s.full.Load()
		if old == replaced {
			return false
		}
		if s.full.CompareAndSwap(old, s.refund(old, n)) {
			return true
		}
	}
}
