package limiter

import (
	"math"
	"time"
)

// Hold admits nothing for d, and begins again with one token after that: what to do when the service
// behind says when to come back. Neither a change of the rate or the burst nor a Refund ends it sooner or later, and
// a shorter Hold does not shorten it. While it lasts nothing can be reserved either; reservations that were made before stand.
func (b *TokenBucket) Hold(d time.Duration) { b.hold(b.now(), d) }

func (b *TokenBucket) hold(at, d time.Duration) {
	b.change(at, func(old *terms) *terms {
		until := after(at, d)
		if until <= old.hold.until || d <= 0 {
			return nil
		}
		s := newTerms(old.rate, old.chosen)
		s.hold = s.holdUntil(until)
		return s
	})
}

// hold keeps a bucket from admitting anything before a time. It is kept apart from the tokens, which come and are given back
// meanwhile as ever, and says how many of them there may be at most.
type hold struct {
	until time.Duration
	floor int64 // the position of a bucket that has one token at until; no bucket that is held is full before it
}

// unheld is no hold.
var unheld = hold{until: math.MinInt64, floor: always}

// after is the time d after another, as far as time is counted.
func after(at, d time.Duration) time.Duration {
	at = within(at)
	return at + min(d, latest-at)
}

// left is how long it still lasts.
func (h hold) left(at time.Duration) time.Duration {
	if at = within(at); at < h.until {
		return h.until - at
	}
	return 0
}

// holdUntil is the hold of a bucket that has no token before a time, and one then.
func (l *limits) holdUntil(until time.Duration) hold {
	if l.usual == 0 {
		return hold{until: until, floor: always}
	}
	first := l.units(l.clamp(until)-1) + 1 // as units may be longer than a nanosecond
	return hold{until: until, floor: first + l.capacity - l.cost}
}

// carryHold is what a hold by old means by l: the same time, or where that is over, as many tokens at most.
func (l *limits) carryHold(old *limits, h hold, at time.Duration) hold {
	switch {
	case h.left(at) > 0:
		return l.holdUntil(h.until)
	case old.usual == 0 || h.floor < old.idle(at): // or the bucket may have become full since
		return unheld
	}
	return hold{until: h.until, floor: l.carry(old, h.floor, at)}
}
