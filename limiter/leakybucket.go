package limiter

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/weir-go/weir/internal/clock"
)

// LeakyBucketConfig configures a [LeakyBucket].
type LeakyBucketConfig struct {
	// Rate is the rate at which requests leave the bucket. Required.
	Rate Rate
	// Capacity is the maximum number of tokens that may be waited for, at least 1. A request beyond
	// it overflows. Default the tokens of one second at the Rate, at least 1.
	Capacity int
	// Name appears in errors and metrics. A limiter with a name keeps statistics and is a
	// [stat.Source]. Default none: no statistics.
	Name string
	// Shadow allows all requests and counts those that would have been refused. Requires a Name.
	// Default false.
	Shadow bool
}

// Validate returns an error that names every invalid field, or nil.
func (c LeakyBucketConfig) Validate() error {
	faults := []error{c.Rate.Validate(), validateCommon(0, c.Name, c.Shadow)}
	if c.Capacity < 0 {
		faults = append(faults, fmt.Errorf("limiter: Capacity is %d, must be at least 1 (or 0 for the default)", c.Capacity))
	}
	return errors.Join(faults...)
}

// LeakyBucket allows requests one at a time at a constant rate, never in a burst: the leaky bucket
// as a queue. A request to an empty bucket is allowed at once. A request to a bucket that is not
// empty waits for its turn, or is refused if the bucket is full. A request for n tokens delays the
// next request by n intervals. For the leaky bucket as a meter, use a [TokenBucket].
//
// Take allows a request only if it does not have to wait, so Remaining is Capacity if a request may
// go now, and 0 otherwise. The tokens of a LeakyBucket never count as near the limit.
//
// All methods are safe for concurrent use. Only Wait blocks. The zero value does not work: use
// NewLeakyBucket.
type LeakyBucket struct {
	named
	epoch    time.Time
	capacity int
	queue    waitQueue

	mu       sync.Mutex
	pace     limits        // of a bucket of one token
	next     int64         // the position from which the next request may proceed
	refunded int64         // all units ever given back
	latest   time.Duration // the latest time of a request
}

// NewLeakyBucket returns an empty bucket. It panics with the error of c.Validate if c is invalid.
func NewLeakyBucket(c LeakyBucketConfig) *LeakyBucket { return newLeakyBucket(c, time.Now()) }

func newLeakyBucket(c LeakyBucketConfig, t0 time.Time) *LeakyBucket {
	mustBeValid(c.Validate())
	capacity := cmp.Or(c.Capacity, c.Rate.tokensPerSecond())
	b := &LeakyBucket{epoch: t0, capacity: capacity, pace: newLimits(c.Rate, 1), next: alwaysFull, latest: firstPosition}
	b.statistics = newStatistics(c.Name, c.Shadow, func() (Result, time.Duration) { return b.peek(time.Now(), 0, 0), 0 })
	if b.statistics != nil {
		b.allOrNothing = true
	}
	b.queue.maxTokens = int64(capacity)
	b.queue.keepStatistics(b.statistics)
	return b
}

// Take allows a request for n tokens to go now, or refuses it. In shadow mode the result is always
// OK, with the numbers of the refusal if the request was not allowed.
func (b *LeakyBucket) Take(n int) Result { return b.takeAt(time.Now(), n, clock.ReadTolerance) }

// TakeAt is Take at the time t.
func (b *LeakyBucket) TakeAt(t time.Time, n int) Result {
	return b.takeAt(t, n, clock.GivenTolerance)
}

func (b *LeakyBucket) takeAt(t time.Time, n int, tolerance time.Duration) Result {
	if b.queue.waitingTokens.Load() != 0 {
		return b.record(b.peek(t, 0, n), n)
	}
	r, _ := b.acquireAt(t.Sub(b.epoch), n, tolerance)
	return b.record(r, n)
}

// Wait returns nil when it is the turn of the caller. If the bucket is full, it returns at once a
// *[LimitedError] whose Reason is QueueFull. For all other errors, see [TokenBucket.Wait]. A caller
// that gives up leaves no gap.
func (b *LeakyBucket) Wait(ctx context.Context, n int) error { return wait(ctx, b, n) }

func (b *LeakyBucket) waitTaken(ctx context.Context, n int, maxWait time.Duration, w *waiter) (taken, error) {
	return b.queue.wait(ctx, b, n, maxWait, w)
}

func (b *LeakyBucket) tryTake(t time.Time, n int, _ counting) (Result, taken) {
	if b.queue.waitingTokens.Load() != 0 {
		return b.peek(t, 0, n), taken{}
	}
	return b.acquireAt(t.Sub(b.epoch), n, clock.ReadTolerance)
}

func (b *LeakyBucket) acquire(n int) (Result, taken) {
	return b.acquireAt(time.Since(b.epoch), n, clock.ReadTolerance)
}

func (b *LeakyBucket) acquireAt(at time.Duration, n int, tolerance time.Duration) (r Result, back taken) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.restart(at, tolerance)
	b.latest = max(b.latest, at)
	r = b.answer(at, 0, n)
	if r.OK && n > 0 {
		back = taken{n: n, at: at, refunded: b.refunded, limits: &b.pace}
		at = b.pace.clamp(at)
		b.next = b.pace.start(b.next, b.pace.units(at)) + product(int64(n), b.pace.cost, maxCapacity)
		if r.ResetAfter = b.pace.until(b.next, at); r.ResetAfter > 0 {
			r.Remaining = 0
		}
		back.end = b.next
	}
	return r, back
}

// restart empties the bucket if its clock is a new one: see clock.IsNew. The caller holds the lock.
func (b *LeakyBucket) restart(at, tolerance time.Duration) bool {
	isNew := clock.IsNew(b.epoch, at, b.latest, tolerance)
	if isNew {
		b.latest, b.next = at, alwaysFull
	}
	return isNew
}

func (b *LeakyBucket) restartIfNew(t time.Time, tolerance time.Duration) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.restart(t.Sub(b.epoch), tolerance)
}

func (b *LeakyBucket) predict(ahead int64, n int) Result {
	return b.predictAt(time.Since(b.epoch), ahead, n)
}

func (b *LeakyBucket) predictAt(at time.Duration, ahead int64, n int) Result {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.answer(at, ahead, n)
}

// answer returns the answer to a request for n tokens that comes after requests for ahead tokens.
// The caller holds the lock.
func (b *LeakyBucket) answer(at time.Duration, ahead int64, n int) Result {
	at = b.pace.clamp(at)
	next := max(b.next, b.pace.units(at))
	next += product(ahead, b.pace.cost, replaced-max(next, 0))
	wait := b.pace.until(next, at)
	r := Result{Limit: b.capacity, RetryAfter: wait, ResetAfter: wait}
	if wait == 0 {
		r.Remaining = b.capacity
	}
	if n < 0 || n > b.capacity {
		r.RetryAfter = Never
	}
	r.OK = r.RetryAfter == 0
	return r
}

func (b *LeakyBucket) peek(t time.Time, ahead int64, n int) Result {
	waiting := b.queue.waitingTokens.Load()
	r := b.predictAt(t.Sub(b.epoch), ahead+waiting, n)
	if waiting != 0 {
		refuseBehindWaiters(&r, n)
	}
	return r
}

// putBack lets the next request go earlier, because an earlier one was not used.
func (b *LeakyBucket) putBack(now time.Time, back taken, n int) taken {
	b.mu.Lock()
	units := b.pace.returnable(back, n, b.refunded, now.Sub(b.epoch))
	b.next = max(b.next-units, alwaysFull)
	b.refunded += units
	back.use(n)
	back.end -= units
	back.refunded += units
	b.mu.Unlock()
	b.queue.wakeFirst()
	return back
}

func (b *LeakyBucket) charge(now time.Time, _ taken, n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	at := now.Sub(b.epoch)
	b.latest = max(b.latest, at)
	b.next = b.pace.charged(b.next, noHold, at, n)
}

func (b *LeakyBucket) refusedByJoint(_ time.Time, n int, r Result, _ bool) { b.recordRefusal(r, n) }

func (b *LeakyBucket) subscribe(w wakeup)   { b.queue.subscribe(w) }
func (b *LeakyBucket) unsubscribe(w wakeup) { b.queue.unsubscribe(w) }
