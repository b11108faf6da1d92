package limiter

import "time"

// Hold admits nothing for d, and begins again with one token after that: what to do when the service
// behind says when to come back. A bucket that owes more than that stays as it is.
func (b *TokenBucket) Hold(d time.Duration) { b.hold(b.now(), d) }

// HoldAt is Hold at a given time.
func (b *TokenBucket) HoldAt(t time.Time, d time.Duration) { b.hold(t.Sub(b.epoch), d) }

func (b *TokenBucket) hold(at, d time.Duration) {
	for s := b.terms.Load(); !s.hold(at, d); s = b.current() {
	}
}

// hold reports false where the terms have been replaced.
func (s *terms) hold(at, d time.Duration) bool {
	if s.usual == 0 || d <= 0 {
		return true
	}
	to := s.held(at, d)
	for {
		old := s.full.Load()
		if old == replaced {
			return false
		}
		if s.full.CompareAndSwap(old, max(old, to)) {
			return true
		}
	}
}

// held is the position of a bucket that has no token for d, and one after that.
func (l *limits) held(at, d time.Duration) int64 {
	at = l.clamp(at)
	return l.units(at+min(d, l.last-at)) + l.capacity - l.cost
}
