package limiter

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// LeakyBucketConfig configures a [LeakyBucket].
type LeakyBucketConfig struct {
	// Rate is how fast the bucket drips. Must be given.
	Rate Rate
	// Capacity is how many permits may be waited for; a request beyond it overflows. Default: what
	// drips in one second, at least 1.
	Capacity int
}

// Validate returns nil for a configuration that makes sense, and otherwise an error that names all faults.
func (c LeakyBucketConfig) Validate() error {
	err := c.Rate.Validate()
	if c.Capacity < 0 {
		err = errors.Join(err, fmt.Errorf("limiter: Capacity is %d, must be at least 1 (or 0 for the default)", c.Capacity))
	}
	return err
}

// LeakyBucket lets callers go one after the other at a constant rate, and never in a burst: the leaky bucket as a
// queue. Who comes while others wait stands behind them; who finds the bucket full is refused (it overflows). The
// first to come to an empty bucket goes at once. A request for n lets the next one go
// after n intervals. (As a meter, the leaky bucket is a [TokenBucket].)
//
// All methods are safe for concurrent use; Wait and WaitAtMost block.
type LeakyBucket struct {
	epoch    time.Time
	capacity int
	line     queue

	mu   sync.Mutex
	pace limits
	free int64 // the position from which the next may go
}

// NewLeakyBucket makes an empty bucket. It panics with the error of c.Validate where there is one.
func NewLeakyBucket(c LeakyBucketConfig) *LeakyBucket {
	if err := c.Validate(); err != nil {
		panic(err)
	}
	if c.Capacity == 0 {
		c.Capacity = c.Rate.second()
	}
	b := &LeakyBucket{epoch: time.Now(), capacity: c.Capacity, pace: newLimits(c.Rate, 1), free: always}
	b.line.room = int64(c.Capacity)
	return b
}

// Wait returns nil when it is the caller's turn. It fails at once with a *LimitedError that matches ErrQueueFull
// where the bucket overflows, or that matches context.DeadlineExceeded where the deadline comes before the turn;
// and with the error of the context where that is done before. Who gives up leaves no gap.
func (b *LeakyBucket) Wait(ctx context.Context, n int) error { return b.WaitAtMost(ctx, n, Never) }

// WaitAtMost is Wait that gives up at once, with a *LimitedError, where it would take longer than maxWait.
func (b *LeakyBucket) WaitAtMost(ctx context.Context, n int, maxWait time.Duration) error {
	return b.line.wait(ctx, b, request{n: n, limit: maxWait})
}

func (b *LeakyBucket) now() time.Duration { return time.Since(b.epoch) }

func (b *LeakyBucket) serve(r *Result, at time.Duration, n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.look(r, at, 0, n)
	if r.OK && n > 0 {
		at = b.pace.clamp(at)
		b.free = b.pace.start(b.free, b.pace.units(at)) + product(int64(n), b.pace.cost, maxCapacity)
	}
}

func (b *LeakyBucket) after(r *Result, at time.Duration, ahead int64, n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.look(r, at, ahead, n)
}

func (b *LeakyBucket) look(r *Result, at time.Duration, ahead int64, n int) {
	at = b.pace.clamp(at)
	start := max(b.free, b.pace.units(at))
	start += product(ahead, b.pace.cost, replaced-max(start, 0))
	r.Limit = b.capacity
	r.RetryAfter = b.pace.until(start, at)
	if n < 0 || n > b.capacity {
		r.RetryAfter = Never
	}
	r.OK = r.RetryAfter == 0
}
