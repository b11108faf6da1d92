package limiter

import (
	"errors"
	"time"
)

// SetRate changes the rate from now on, also for waiters. The bucket keeps its tokens, and
// reservations keep their promised tokens. If r is invalid, SetRate returns an error and changes
// nothing.
func (b *TokenBucket) SetRate(r Rate) error { return b.setRateAt(time.Since(b.epoch), r) }

// SetBurst changes the most tokens in the bucket. Tokens beyond the new burst are lost; a larger
// burst fills at the rate. If n is invalid, SetBurst returns an error and changes nothing. There is
// no default: 0 is invalid.
func (b *TokenBucket) SetBurst(n int) error { return b.setBurstAt(time.Since(b.epoch), n) }

func (b *TokenBucket) setRateAt(at time.Duration, r Rate) error {
	if err := r.Validate(); err != nil {
		return err
	}
	b.replaceState(at, func(old *bucketState) *bucketState { return newBucketState(r, old.configuredBurst) })
	return nil
}

func (b *TokenBucket) setBurstAt(at time.Duration, n int) error {
	if n == 0 {
		return errors.New("limiter: Burst is 0, must be at least 1")
	}
	if err := (TokenBucketConfig{Rate: Unlimited(), Burst: n}).Validate(); err != nil {
		return err
	}
	b.replaceState(at, func(old *bucketState) *bucketState { return newBucketState(old.rate, n) })
	return nil
}

// setLimits changes the rate and the burst in one step. Both are valid; a burst of 0 means the
// default.
func (b *TokenBucket) setLimits(r Rate, burst int) {
	b.replaceState(time.Since(b.epoch), func(old *bucketState) *bucketState {
		if old.rate == r && old.configuredBurst == burst {
			return nil
		}
		return newBucketState(r, burst)
	})
}

// replaceState replaces the state by the one that successor returns, unless that is nil. Concurrent
// requests either happen before or find the state replaced and wait for the lock.
func (b *TokenBucket) replaceState(at time.Duration, successor func(old *bucketState) *bucketState) {
	b.mu.Lock()
	old := b.state.Load()
	next := successor(old)
	if next == nil {
		b.mu.Unlock()
		return
	}
	old.next, old.replacedAt = next, at
	next.since = max(old.since, at)
	if next.hold == noHold {
		next.hold = next.convertHold(&old.limits, old.hold, at)
	}
	next.lastPromise = promise{end: old.convertToNext(old.lastPromise.end), serial: old.lastPromise.serial}
	next.full.Store(old.convertToNext(old.full.Swap(replaced)))
	b.state.Store(next)
	b.mu.Unlock()
	b.queue.wakeFirst()
}
