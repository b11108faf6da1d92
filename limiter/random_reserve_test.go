package limiter_test

import (
	"cmp"
	"slices"
	"time"

	"github.com/weir-go/weir/limiter"
)

// openReservation is a reservation that was not cancelled.
type openReservation struct {
	*limiter.Reservation
	n   int
	due time.Duration
}

// addReservedBucket creates a bucket whose tokens are reserved and whose reservations are
// cancelled. The tokens taken, including reserved ones at their time to act, must stay within the
// bound of the bucket.
func (w *randomTest) addReservedBucket() {
	const interval, burst = 100 * ms, 10
	b := limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.Per(1, interval), Burst: burst})
	o := newLevelOracle(interval, burst)
	var openReservations []openReservation
	s := &testedLimiter{limiterNode: &limiterNode{name: "reserved", of: o, most: func() int { return burst }}, unending: true}
	s.reserve = func() {
		at := w.now()
		openReservations = slices.DeleteFunc(openReservations, func(r openReservation) bool { return r.due < at })
		switch w.IntN(5) {
		case 0, 1:
			if len(openReservations) > 0 {
				i := w.IntN(len(openReservations))
				w.cancelReservation(b, o, openReservations[i])
				openReservations = slices.Delete(openReservations, i, i+1)
			}
		case 2:
			for range 3 {
				if r, ok := w.reserve(b, o, limiter.Never, len(s.queue) > 0); ok {
					openReservations = append(openReservations, r)
				}
			}
			for len(openReservations) > 1+w.IntN(2) {
				i := w.IntN(len(openReservations))
				w.cancelReservation(b, o, openReservations[i])
				openReservations = slices.Delete(openReservations, i, i+1)
			}
			if len(openReservations) > 0 && len(s.queue) == 0 {
				// a request at a time to act gets no promised token
				w.sleep(openReservations[len(openReservations)-1].due - at)
				w.checkResults()
				if left := b.Take(0).Remaining; left > 0 && b.Take(left).OK {
					o.take(w.now(), left)
				}
			}
		default:
			if r, ok := w.reserve(b, o, w.randomTime(), len(s.queue) > 0); ok {
				openReservations = append(openReservations, r)
			}
		}
		w.checkSpans(o, interval, burst)
	}
	w.add(s, b)
}

func (w *randomTest) reserve(b *limiter.TokenBucket, o *levelOracle, limit time.Duration, blocked bool) (openReservation, bool) {
	n, at := 1+w.IntN(10), w.now()
	delay := time.Duration(max(float64(n)-o.room(at), 0) / o.rate)
	r := b.Reserve(n, limit)
	w.check(!r.OK || !blocked && delay-toleratedDelay < limit, "reserved: Reserve(%d, %s) of %v: %+v", n, limit, o.level, r.Result)
	w.check(r.OK || blocked || delay > limit-toleratedDelay, "reserved: Reserve(%d, %s) of %v: %+v", n, limit, o.level, r.Result)
	if !r.OK {
		return openReservation{}, false
	}
	w.check((r.Delay-delay).Abs() <= toleratedDelay, "reserved: Reserve(%d) may act in %s, not %s", n, r.Delay, delay)
	o.level -= float64(n)
	o.acts = append(o.acts, takenTokens{at + r.Delay, n})
	return openReservation{r, n, at + r.Delay}, true
}

// cancelReservation cancels a reservation, and checks that it gives back no more than it took.
func (w *randomTest) cancelReservation(b *limiter.TokenBucket, o *levelOracle, r openReservation) {
	at := w.now()
	o.advance(at)
	r.Refund(r.n)
	once := b.Tokens()
	r.Refund(r.n)
	w.check(b.Tokens() == once, "reserved: a reservation can be refunded twice")
	o.acts = slices.Delete(o.acts, slices.Index(o.acts, takenTokens{r.due, r.n}), slices.Index(o.acts, takenTokens{r.due, r.n})+1)
	before := o.level
	o.level = b.Tokens()
	most := min(before+float64(r.n), o.burst)
	w.check(o.level > before-roundingError && o.level < most+roundingError, "reserved: a Refund of %d makes %v of %v", r.n, o.level, before)
}

// checkSpans checks every span between two times at which tokens were taken.
func (w *randomTest) checkSpans(o *levelOracle, interval time.Duration, burst int) {
	slices.SortStableFunc(o.acts, func(a, b takenTokens) int { return cmp.Compare(a.at, b.at) })
	for i, first := range o.acts {
		sum := 0
		for _, last := range o.acts[i:] {
			sum += last.n
			most := float64(burst) + float64(last.at-first.at+toleratedDelay)/float64(interval)
			w.check(float64(sum) <= most, "reserved: %d were taken from %s to %s, where %v may be", sum, first.at, last.at, most)
		}
	}
	if len(o.acts) > 60 {
		o.acts = o.acts[1:] // drop old ones
	}
}
