package limiter

import (
	"errors"
	"time"
)

// SetRate changes the rate, from now on and also for those who wait. The tokens that are there
// stay; what is owed stays owed, in tokens. An error says that the rate makes no sense, and
// then nothing changes.
func (b *TokenBucket) SetRate(r Rate) error { return b.setRate(b.now(), r) }

// SetBurst changes the most tokens that gather. The tokens that are there stay, but for those
// beyond the new burst; a higher one fills at the rate. An error says that the burst makes no
// sense (it has no default here), and then nothing changes.
func (b *TokenBucket) SetBurst(n int) error { return b.setBurst(b.now(), n) }

func (b *TokenBucket) setRate(at time.Duration, r Rate) error {
	if err := r.Validate(); err != nil {
		return err
	}
	b.change(at, func(old *terms) *terms { return newTerms(r, old.chosen) })
	return nil
}

func (b *TokenBucket) setBurst(at time.Duration, n int) error {
	if n == 0 {
		return errors.New("limiter: Burst is 0, must be at least 1")
	}
	if err := (TokenBucketConfig{Rate: Unlimited(), Burst: n}).Validate(); err != nil {
		return err
	}
	b.change(at, func(old *terms) *terms { return newTerms(old.rate, n) })
	return nil
}

// change replaces the terms, unless the successor is nil. Requests meanwhile either happened before or wait for the lock.
func (b *TokenBucket) change(at time.Duration, successor func(old *terms) *terms) {
	b.mu.Lock()
	old := b.terms.Load()
	next := successor(old)
	if next == nil {
		b.mu.Unlock()
		return
	}
	old.next, old.ended = next, at
	if next.hold == unheld {
		next.hold = next.carryHold(&old.limits, old.hold, at)
	}
	next.promised = promise{end: old.carried(old.promised.end), serial: old.promised.serial}
	next.full.Store(old.carried(old.full.Swap(replaced)))
	b.terms.Store(next)
	b.mu.Unlock()
	b.line.poke()
}
