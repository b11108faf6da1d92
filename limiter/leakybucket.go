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
	// Name stands in errors and metrics. A limiter with a name keeps statistics and is a [stat.Source].
	// Default: no name and no statistics.
	Name string
	// Named is what a limiter with a name does besides. Default [NamedConfig]'s own.
	Named NamedConfig
}

// Validate returns nil for a configuration that makes sense, and otherwise an error that names all faults.
func (c LeakyBucketConfig) Validate() error {
	faults := []error{c.Rate.Validate()}
	if c.Capacity < 0 {
		faults = append(faults, fmt.Errorf("limiter: Capacity is %d, must be at least 1 (or 0 for the default)", c.Capacity))
	}
	return errors.Join(append(faults, c.Named.validateFor(c.Name))...)
}

// LeakyBucket lets callers go one after the other at a constant rate, and never in a burst: the leaky bucket as a
// queue. A caller that comes while others wait stands behind them; one that finds the bucket full is refused (the bucket
// overflows). The first caller at an empty bucket goes at once. A request for n lets the next one go
// after n intervals. (As a meter, the leaky bucket is a [TokenBucket].)
//
// Take goes only where a caller would not have to wait. So Remaining is Capacity when a request may go, and 0 while it
// may not.
//
// All methods are safe for concurrent use; only Wait and WaitAtMost block.
type LeakyBucket struct {
	*statistics
	epoch    time.Time
	capacity int
	line     queue

	mu   sync.Mutex
	pace limits
	free int64 // the position from which the next may go
}

// NewLeakyBucket makes an empty bucket. It panics with the error of c.Validate where there is one.
func NewLeakyBucket(c LeakyBucketConfig) *LeakyBucket { return NewLeakyBucketAt(c, time.Now()) }

// NewLeakyBucketAt makes an empty bucket that is driven by given times, from t0 on.
func NewLeakyBucketAt(c LeakyBucketConfig, t0 time.Time) *LeakyBucket {
	if err := c.Validate(); err != nil {
		panic(err)
	}
	if c.Capacity == 0 {
		c.Capacity = c.Rate.second()
	}
	b := &LeakyBucket{epoch: t0, capacity: c.Capacity, pace: newLimits(c.Rate, 1), free: always}
	b.line.room = int64(c.Capacity)
	b.statistics = newStatistics(c.Name, c.Named, func() (Result, time.Duration) { return b.try(0), 0 })
	return b
}

// Take lets a request for n go now, or refuses it. In shadow mode the result is OK also where it was refused, with the
// numbers of the refusal.
func (b *LeakyBucket) Take(n int) Result { return b.TakeAt(time.Now(), n) }

// TakeAt is Take at a given time.
func (b *LeakyBucket) TakeAt(t time.Time, n int) Result {
	r := b.attempt(t, n)
	b.count(&r, n)
	return r
}

// Refund lets the next caller go n intervals sooner, because a request for n that has gone was not used.
func (b *LeakyBucket) Refund(n int) { b.giveBack(b.owed(n)) }

// Wait returns nil when it is the caller's turn. It fails at once with a *LimitedError that matches ErrQueueFull
// where the bucket overflows, or that matches context.DeadlineExceeded where the deadline comes before the turn;
// and with the error of the context where that is done before. A caller that gives up leaves no gap.
func (b *LeakyBucket) Wait(ctx context.Context, n int) error { return b.WaitAtMost(ctx, n, Never) }

// WaitAtMost is Wait that gives up at once, with a *LimitedError, where it would take longer than maxWait.
func (b *LeakyBucket) WaitAtMost(ctx context.Context, n int, maxWait time.Duration) error {
	if b.statistics != nil {
		return b.waitFor(ctx, b, n, maxWait)
	}
	return b.waitAtMost(ctx, n, maxWait)
}

func (b *LeakyBucket) waitAtMost(ctx context.Context, n int, maxWait time.Duration) error {
	return b.line.wait(ctx, b, request{n: n, limit: maxWait})
}

func (b *LeakyBucket) attempt(t time.Time, n int) (r Result) {
	if b.line.ahead.Load() != 0 {
		b.peek(&r, t, 0, n)
	} else {
		b.serve(&r, t.Sub(b.epoch), n)
	}
	return r
}

func (b *LeakyBucket) try(n int) Result { return b.attempt(time.Now(), n) }

func (b *LeakyBucket) giveBack(n int) {
	if n < 1 {
		return
	}
	b.mu.Lock()
	b.free = max(b.free-product(int64(n), b.pace.cost, maxCapacity), always)
	b.mu.Unlock()
	b.line.poke()
}

func (b *LeakyBucket) peek(r *Result, t time.Time, ahead int64, n int) {
	waiting := b.line.ahead.Load()
	b.after(r, t.Sub(b.epoch), ahead+waiting, n)
	if waiting != 0 {
		stepBack(r, n)
	}
}

func (b *LeakyBucket) refuse(t time.Time, n int, _ bool) { b.countRefusal(b, t, n) }

func (b *LeakyBucket) watch(l bell)   { b.line.watch(l) }
func (b *LeakyBucket) unwatch(l bell) { b.line.unwatch(l) }

func (b *LeakyBucket) now() time.Duration { return time.Since(b.epoch) }

func (b *LeakyBucket) serve(r *Result, at time.Duration, n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.look(r, at, 0, n)
	if r.OK && n > 0 {
		at = b.pace.clamp(at)
		b.free = b.pace.start(b.free, b.pace.units(at)) + product(int64(n), b.pace.cost, maxCapacity)
		if r.ResetAfter = b.pace.until(b.free, at); r.ResetAfter > 0 {
			r.Remaining = 0
		}
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
	if r.ResetAfter = r.RetryAfter; r.ResetAfter == 0 {
		r.Remaining = b.capacity
	}
	if n < 0 || n > b.capacity {
		r.RetryAfter = Never
	}
	r.OK = r.RetryAfter == 0
}
