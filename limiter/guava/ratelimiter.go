package guava

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/weir-go/weir/internal/clock"
	"github.com/weir-go/weir/internal/friend"
	"github.com/weir-go/weir/internal/waiting"
	"github.com/weir-go/weir/limiter"
)

// limiters are functions of package limiter beyond its API.
var limiters = limiter.Inside(friend.Key{})

func validate(r limiter.Rate, maxWaiters int) error {
	if r == limiter.Unlimited() {
		return errors.New("guava: Rate is unlimited, must be finite")
	}
	err := r.Validate()
	if maxWaiters < 0 {
		err = errors.Join(err, fmt.Errorf("guava: MaxWaiters is %d, must be at least 1 (or 0 for no bound)", maxWaiters))
	}
	return err
}

// RateLimiter is Guava's RateLimiter, a pacer: see [NewSmoothBursty] and [NewSmoothWarmingUp].
//
// All methods are safe for concurrent use. Only Wait blocks. The zero value does not work: use one
// of the constructors.
type RateLimiter struct {
	epoch time.Time // times are durations since then
	queue waiting.Queue

	mu     sync.Mutex
	curve  curve
	begun  bool
	latest time.Duration // when the last request was made
	last   lastRequest
}

// lastRequest holds the state before the last request, so that Refund can undo that request exactly
// if no other request followed.
type lastRequest struct {
	n             int
	before, after curve
	previous      time.Duration // when the request before was made
}

func newRateLimiter(r limiter.Rate, maxWaiters int, epoch time.Time, c curve) *RateLimiter {
	p := &RateLimiter{epoch: epoch, curve: c, latest: firstTime}
	p.last.previous = firstTime
	p.queue = limiters.NewQueue(queueSource{p}, maxWaiters)
	p.curve.setRate(0, limiters.PerSecond(r))
	return p
}

// Take allows a request for n permits if earlier requests are paid for, and refuses it otherwise.
// There is no limit on n: Remaining is math.MaxInt if a request may go, and 0 otherwise.
func (p *RateLimiter) Take(n int) limiter.Result {
	return p.take(p.now(), n, clock.ReadTolerance)
}

// TakeAt is Take at the time t.
func (p *RateLimiter) TakeAt(t time.Time, n int) limiter.Result {
	return p.take(clampTime(t.Sub(p.epoch)), n, clock.GivenTolerance)
}

func (p *RateLimiter) take(at time.Duration, n int, tolerance time.Duration) limiter.Result {
	waiters := p.queue.HasWaiters()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.restartIfNew(at, tolerance)
	wait := p.waitAfter(at, 0)
	r := limiter.Result{OK: n >= 0 && wait == 0 && !waiters, Limit: math.MaxInt, RetryAfter: wait}
	if r.OK && n > 0 {
		p.chargeRequest(at, n)
	}
	if r.ResetAfter = p.waitAfter(at, 0); r.ResetAfter == 0 && !waiters {
		r.Remaining = math.MaxInt
	}
	switch {
	case n < 0:
		r.RetryAfter = limiter.Never
	case waiters && n > 0:
		r.RetryAfter = max(wait, 1) // the first waiter is being served at this moment
	}
	return r
}

// Refund undoes a request for n permits that was made at the time taken. If other requests were
// made since, the next request may go n intervals earlier, less the time from taken until the last
// of these requests. Without the undone request, the permits of that time might not have been
// stored.
func (p *RateLimiter) Refund(taken time.Time, n int) {
	if n < 1 {
		return
	}
	p.mu.Lock()
	at := clampTime(taken.Sub(p.epoch))
	isLast := at > p.last.previous || at == p.latest
	if isLast && p.last.n == n && p.curve == p.last.after {
		p.curve = p.last.before
	} else {
		since := max(floorMicros(p.latest)-floorMicros(at), 0)
		back := max(wholeMicros(float64(n)*p.curve.interval)-since, 0)
		least := min(p.curve.next, floorMicros(p.latest))
		if back < p.curve.next-least {
			p.curve.next -= back
		} else {
			p.curve.next = least
		}
	}
	p.last = lastRequest{}
	p.mu.Unlock()
	p.queue.WakeFirst()
}

// Wait waits until earlier requests are paid for, and charges n permits to the next request.
// Waiters are served in order of arrival. The errors are those of limiter.TokenBucket.Wait.
func (p *RateLimiter) Wait(ctx context.Context, n int) error { return p.queue.Wait(ctx, n) }

// Reserve charges n permits and returns how long the caller must wait before it goes. If that
// exceeds maxWait, or n is below 1, ok is false and nothing is charged. A reservation goes before
// the callers that wait in the queue.
func (p *RateLimiter) Reserve(n int, maxWait time.Duration) (wait time.Duration, ok bool) {
	return p.reserve(p.now(), n, maxWait)
}

// SetRate changes the rate. The wait of the next request does not change, and the stored permits
// keep their proportion to the maximum. If r is invalid, SetRate returns an error and changes
// nothing.
func (p *RateLimiter) SetRate(r limiter.Rate) error { return p.setRate(p.now(), r) }

// setRate need not wake the first waiter, because the time of the next request does not change.
func (p *RateLimiter) setRate(at time.Duration, r limiter.Rate) error {
	if err := validate(r, 0); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.startAt(at)
	p.curve.setRate(floorMicros(at), limiters.PerSecond(r))
	return nil
}

func (p *RateLimiter) reserve(at time.Duration, n int, maxWait time.Duration) (wait time.Duration, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.restartIfNew(at, clock.GivenTolerance)
	p.startAt(at)
	wait = timeUntil(p.curve.next, time.Duration(floorMicros(at))*time.Microsecond)
	if n < 1 || wait > max(maxWait, 0) {
		return 0, false
	}
	p.chargeRequest(at, n)
	return wait, true
}

// restartIfNew lets the pacer begin at the time if its clock is a new one: see clock.IsNew. The
// caller holds the lock.
func (p *RateLimiter) restartIfNew(at, tolerance time.Duration) {
	if clock.IsNew(p.epoch, at, p.latest, tolerance) {
		p.begun, p.latest, p.last = false, at, lastRequest{previous: firstTime}
	}
}

// startAt moves the start of the pacer to the first time it is given, if that is before its
// creation.
func (p *RateLimiter) startAt(at time.Duration) {
	if !p.begun {
		p.begun = true
		p.curve.next = min(p.curve.next, floorMicros(at))
	}
}

// chargeRequest makes a request for n permits. The caller holds the lock.
func (p *RateLimiter) chargeRequest(at time.Duration, n int) {
	p.last = lastRequest{n: n, before: p.curve, previous: p.latest}
	p.latest = max(p.latest, at)
	p.curve.takePermits(floorMicros(at), float64(n))
	p.last.after = p.curve
}

// waitAfter returns how long a request must wait if others take ahead permits first. The caller
// holds the lock.
func (p *RateLimiter) waitAfter(at time.Duration, ahead int64) time.Duration {
	p.startAt(at)
	after := p.curve
	if ahead > 0 {
		after.takePermits(floorMicros(at), float64(ahead))
	}
	return timeUntil(after.next, at)
}

// queueSource has the methods of a RateLimiter that its queue uses.
type queueSource struct{ *RateLimiter }

func (s queueSource) Acquire(n int) (retryAfter time.Duration, ok bool) {
	if n < 1 {
		return limiter.Never, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	at := s.now()
	s.restartIfNew(at, clock.ReadTolerance)
	if retryAfter = s.waitAfter(at, 0); retryAfter > 0 {
		return retryAfter, false
	}
	s.chargeRequest(at, n)
	return 0, true
}

func (s queueSource) Predict(ahead int64, n int) (retryAfter time.Duration, ok bool) {
	if n < 1 {
		return limiter.Never, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	retryAfter = s.waitAfter(s.now(), ahead)
	return retryAfter, retryAfter == 0
}

func (p *RateLimiter) now() time.Duration { return clampTime(time.Since(p.epoch)) }

// Times are clamped to these bounds, so that no sum of two times and a microsecond overflows.
const (
	firstTime time.Duration = -1 << 61
	lastTime  time.Duration = 1<<62 - 1
)

func clampTime(at time.Duration) time.Duration { return min(max(at, firstTime), lastTime) }

// timeUntil returns the time from at until a time in microseconds: 0 if that has passed, Never if
// it is too late.
func timeUntil(next int64, at time.Duration) time.Duration {
	if next > int64(lastTime)/1000 {
		return limiter.Never
	}
	return max(time.Duration(next)*time.Microsecond-at, 0)
}

func floorMicros(at time.Duration) int64 {
	whole := at.Microseconds()
	if at < 0 && at%time.Microsecond != 0 {
		whole--
	}
	return whole
}
