package limiter

import (
	"math"
	"time"
)

// Hold refuses all requests for d. Then there is one token, and more are added at the rate. Call it
// when the service behind the limiter asks to wait. A change of the rate or the burst does not
// change the end of a Hold, nor does a Refund or a shorter Hold. Reservations made before remain
// valid.
func (b *TokenBucket) Hold(d time.Duration) { b.holdAt(time.Since(b.epoch), d) }

func (b *TokenBucket) holdAt(at, d time.Duration) {
	b.replaceState(at, func(old *bucketState) *bucketState {
		until := addTime(at, d)
		if until <= old.hold.until || d <= 0 {
			return nil
		}
		s := newBucketState(old.rate, old.configuredBurst)
		s.set, s.hold = old.set, s.holdUntil(until)
		return s
	})
}

// hold refuses all requests before a time. It is separate from the count of tokens, which continues
// during the hold. After the hold, floor bounds the number of tokens.
type hold struct {
	until time.Duration
	// the position at which a bucket with one token at until is full; no held bucket is full
	// earlier
	floor int64
}

var noHold = hold{until: math.MinInt64, floor: alwaysFull}

// addTime returns at+d, at most the last time that is counted.
func addTime(at, d time.Duration) time.Duration {
	at = clampTime(at)
	return at + min(d, lastPosition-at)
}

// remaining returns how long the hold lasts from at on.
func (h hold) remaining(at time.Duration) time.Duration {
	if at = clampTime(at); at < h.until {
		return h.until - at
	}
	return 0
}

// holdUntil returns the hold of a bucket that has no token before a time, and one token at that
// time.
func (l *limits) holdUntil(until time.Duration) hold {
	if l.counted == 0 {
		return hold{until: until, floor: alwaysFull}
	}
	first := l.units(l.clamp(until)-1) + 1 // a unit may be longer than a nanosecond
	return hold{until: until, floor: first + l.capacity - l.cost}
}

// convertHold converts the hold h from the limits old to the limits l. The result ends when h ends.
// If h is over by the time at, the result allows as many tokens as h.
func (l *limits) convertHold(old *limits, h hold, at time.Duration) hold {
	switch {
	case h.remaining(at) > 0:
		return l.holdUntil(h.until)
	case old.counted == 0 || h.floor < old.idle(at): // the bucket may have been full since
		return noHold
	}
	return hold{until: h.until, floor: l.convert(old, h.floor, at)}
}
