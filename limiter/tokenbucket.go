package limiter

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/internal/clock"
	"github.com/weir-go/weir/internal/settings"
)

// TokenBucketConfig configures a [TokenBucket].
type TokenBucketConfig struct {
	// Rate is the rate at which tokens are added. Required.
	Rate Rate
	// Burst is the maximum number of tokens in the bucket, and the most that one request can take,
	// up to 2^40. Off refuses all requests. Default the tokens of one second at the Rate, at least
	// 1.
	Burst int
	// MaxWaiters is the maximum number of callers that may wait at once. Further callers are
	// refused. Default no bound.
	MaxWaiters int
	// Name appears in errors and metrics. A limiter with a name keeps statistics and is a
	// [stat.Source]. Default none: no statistics.
	Name string
	// Shadow allows all requests and counts those that would have been refused. Requires a Name.
	// Default false.
	Shadow bool
}

// Off is a Burst of no tokens: all requests are refused, unless the rate is Unlimited.
const Off = -1

// maxBurst bounds a bucket, so that a scale can still count small parts of a token.
const maxBurst = 1 << 40

// Validate returns an error that names every invalid field, or nil.
func (c TokenBucketConfig) Validate() error {
	faults := []error{c.Rate.Validate()}
	if c.Burst < Off {
		faults = append(faults, fmt.Errorf("limiter: Burst is %d, must be at least 1 (or 0 for the default, or Off)", c.Burst))
	}
	if int64(c.Burst) > maxBurst {
		faults = append(faults, fmt.Errorf("limiter: Burst is %d, must be at most %d", c.Burst, int64(maxBurst)))
	}
	return errors.Join(append(faults, validateCommon(c.MaxWaiters, c.Name, c.Shadow))...)
}

// TokenBucket holds up to Burst tokens and adds tokens at a constant rate. A request takes its
// tokens or is refused. A new bucket is full. The bucket is the limiter to choose first. The leaky
// bucket as a meter, the funnel and redis-cell's GCRA are the same algorithm under other names.
//
// In any span of time it allows at most Burst tokens and those added in that span. This bound is
// exact to two nanoseconds. For a bucket that takes more than 18 years to fill, it is exact to
// 2^-59 of that time. RetryAfter is minimal within the same error. Requests at exactly the rate are
// never refused, and no rounding error adds up over the years.
//
// The state is one word, the time at which the bucket will be full again (the "theoretical arrival
// time" of GCRA, ATM Forum Traffic Management 4.0). A refusal therefore writes nothing, and an idle
// bucket needs no work. A bucket lasts 73 years, or 29 years if the rate exceeds two tokens per
// nanosecond. After that time no more tokens are added.
//
// All methods are safe for concurrent use. Only Wait blocks. The zero value does not work: use
// NewTokenBucket.
type TokenBucket struct {
	named
	epoch time.Time
	state atomic.Pointer[bucketState]
	queue waitQueue

	refunded atomic.Int64 // all units ever given back; written with the lock held

	// held while the state is replaced, and while tokens are reserved or given back
	mu     sync.Mutex
	serial uint64 // the number of reservations
}

// NewTokenBucket returns a full bucket. It panics with the error of c.Validate if c is invalid.
func NewTokenBucket(c TokenBucketConfig) *TokenBucket { return newTokenBucket(c, time.Now()) }

// newTokenBucket returns a full bucket for times from t0 on.
func newTokenBucket(c TokenBucketConfig, t0 time.Time) *TokenBucket {
	mustBeValid(c.Validate())
	b := &TokenBucket{epoch: t0}
	b.state.Store(newBucketState(c.Rate, c.Burst))
	b.statistics = newStatistics(c.Name, c.Shadow, func() (Result, time.Duration) { return b.peek(time.Now(), 0, 0), b.period() })
	b.queue.maxWaiters = c.MaxWaiters
	b.queue.keepStatistics(b.statistics)
	return b
}

// Take takes n tokens, or none if there are fewer. In shadow mode the result is always OK, with the
// numbers of the refusal if no tokens were taken.
func (b *TokenBucket) Take(n int) (r Result) {
	at := time.Since(b.epoch)
	if b.queue.slow.Load() {
		return b.takeSlow(at, n, clock.ReadTolerance)
	}
	if full, current := b.state.Load().take(&r, at, n); !current || full > 0 && !r.OK {
		b.takeAgain(&r, at, n, current, clock.ReadTolerance)
	}
	return r
}

// TakeAt is Take at the time t.
func (b *TokenBucket) TakeAt(t time.Time, n int) (r Result) {
	at := t.Sub(b.epoch)
	if b.queue.slow.Load() {
		return b.takeSlow(at, n, clock.GivenTolerance)
	}
	if full, current := b.state.Load().take(&r, at, n); !current || full > 0 && !r.OK {
		b.takeAgain(&r, at, n, current, clock.GivenTolerance)
	}
	return r
}

// takeAgain takes n tokens after a request that the state may have refused because it is ahead of
// the time, or that did not find the current state.
func (b *TokenBucket) takeAgain(r *Result, at time.Duration, n int, current bool, tolerance time.Duration) {
	if !current {
		b.acquireAt(r, at, n)
	}
	if !r.OK && b.restart(at, tolerance) {
		*r = Result{}
		b.acquireAt(r, at, n)
	}
}

// takeSlow does the work of Take for a bucket that has waiters or keeps statistics.
func (b *TokenBucket) takeSlow(at time.Duration, n int, tolerance time.Duration) Result {
	r := b.takeAt(at, n)
	if r.RetryAfter > tolerance && b.restart(at, tolerance) {
		r = b.takeAt(at, n)
	}
	return b.record(r, n)
}

// restart makes the bucket full if its clock is a new one, and reports whether it did: see
// clock.IsNew. It is called after a refusal, so allowed requests pay nothing.
func (b *TokenBucket) restart(at, tolerance time.Duration) bool {
	return b.state.Load().isAhead(at+tolerance) && b.restartAhead(at, tolerance)
}

// restartAhead does the work of restart for a bucket whose state is ahead of the time.
func (b *TokenBucket) restartAhead(at, tolerance time.Duration) bool {
	b.mu.Lock()
	isNew := clock.IsNew(b.epoch, at, b.state.Load().latest(), tolerance)
	if isNew {
		b.fillLocked(at)
	}
	b.mu.Unlock()
	if isNew {
		b.queue.wakeFirst()
	}
	return isNew
}

// takeFast takes n tokens at a time since the epoch in the simple case, and reports whether it has
// taken them. If not, TakeAt decides. It exists for the gate of package weir, because it costs less
// than TakeAt.
func (b *TokenBucket) takeFast(at time.Duration, n int) bool {
	return !b.queue.slow.Load() && b.state.Load().takeFast(at, n)
}

// Tokens returns the number of tokens in the bucket, with fractions. It is negative while
// reservations are owed tokens, and not above 0 during a Hold.
func (b *TokenBucket) Tokens() float64 {
	at := time.Since(b.epoch)
	b.restart(at, clock.ReadTolerance)
	return b.tokensAt(at)
}

func (b *TokenBucket) tokensAt(at time.Duration) float64 {
	for s := b.state.Load(); ; s = b.currentState() {
		if full := s.full.Load(); full != replaced {
			return s.tokensAt(full, at)
		}
	}
}

// Wait takes n tokens as soon as there are that many. Callers are served in order of arrival, and
// while a caller waits, Take refuses. A caller is charged when it is served.
//
// If ctx is done, or is cancelled during the wait, Wait returns its error. A wait that cannot
// succeed is refused at once, with a *[LimitedError]. Its Reason is PastDue if the deadline of ctx
// is too early, and QueueFull if MaxWaiters callers wait already. If n is above Burst or below 0,
// its RetryAfter is Never.
func (b *TokenBucket) Wait(ctx context.Context, n int) error { return wait(ctx, b, n) }

func (b *TokenBucket) waitTaken(ctx context.Context, n int, maxWait time.Duration, w *waiter) (taken, error) {
	return b.queue.wait(ctx, b, n, maxWait, w)
}

// takeAt takes n tokens, unless callers wait in the queue. It does not count the request in the
// statistics.
func (b *TokenBucket) takeAt(at time.Duration, n int) (r Result) {
	if b.queue.waitingTokens.Load() != 0 {
		return b.peekAt(at, 0, n)
	}
	b.acquireAt(&r, at, n)
	return r
}

func (b *TokenBucket) acquire(n int) (Result, taken) { return b.acquireTaken(time.Since(b.epoch), n) }

// acquireTaken is acquireAt that also returns what it has taken.
func (b *TokenBucket) acquireTaken(at time.Duration, n int) (r Result, back taken) {
	back.refunded = b.refunded.Load() // before the take, so that no later refund is missed
	s := b.state.Load()
	full, current := s.take(&r, at, n)
	for !current {
		s = b.currentState()
		full, current = s.take(&r, at, n)
	}
	if r.RetryAfter > clock.ReadTolerance && b.restart(at, clock.ReadTolerance) {
		return b.acquireTaken(at, n)
	}
	if r.OK && n > 0 && s.counted > 0 {
		back.n, back.at, back.end, back.limits = n, at, full, &s.limits
	}
	return r, back
}

// acquireAt takes n tokens without regard to the queue. It fills in r instead of returning a
// Result, because the compiler copies a struct of five fields through memory at each return, which
// takes as long as all the arithmetic.
func (b *TokenBucket) acquireAt(r *Result, at time.Duration, n int) {
	for s := b.state.Load(); ; s = b.currentState() {
		if _, current := s.take(r, at, n); current {
			return
		}
	}
}

func (b *TokenBucket) predict(ahead int64, n int) Result {
	return b.predictAt(time.Since(b.epoch), ahead, n)
}

func (b *TokenBucket) predictAt(at time.Duration, ahead int64, n int) (r Result) {
	for s := b.state.Load(); !s.predict(&r, at, ahead, n); s = b.currentState() {
	}
	return r
}

// peekAt returns the answer that Take(n) would give if ahead more tokens were taken before it. It
// respects the queue, as takeAt does. predictAt and acquireAt do not.
func (b *TokenBucket) peekAt(at time.Duration, ahead int64, n int) Result {
	waiting := b.queue.waitingTokens.Load()
	r := b.predictAt(at, waiting+ahead, n)
	if waiting != 0 {
		refuseBehindWaiters(&r, n)
	}
	return r
}

func (b *TokenBucket) peek(t time.Time, ahead int64, n int) Result {
	return b.peekAt(t.Sub(b.epoch), ahead, n)
}

func (b *TokenBucket) tryTake(t time.Time, n int, _ counting) (Result, taken) {
	at := t.Sub(b.epoch)
	if b.queue.waitingTokens.Load() != 0 {
		return b.peekAt(at, 0, n), taken{}
	}
	return b.acquireTaken(at, n)
}

func (b *TokenBucket) putBack(now time.Time, back taken, n int) taken {
	b.mu.Lock()
	s, at := b.state.Load(), now.Sub(b.epoch)
	units := s.returnable(back, n, b.refunded.Load(), at)
	units = max(units-s.promisedAfter(back.end, at), 0)
	b.credit(s, units)
	back.use(n)
	back.end -= units
	back.refunded += units // the own refund has moved end, and nothing else
	b.mu.Unlock()
	b.queue.wakeFirst()
	return back
}

func (b *TokenBucket) charge(now time.Time, _ taken, n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s, at := b.state.Load(), now.Sub(b.epoch)
	for s.counted > 0 {
		old := s.full.Load()
		next := s.charged(old, s.hold, at, n)
		if s.full.CompareAndSwap(old, next) {
			s.debt, s.chargedAt = next, at
			return
		}
	}
}

// credit gives back units. The caller holds the lock, so the state is not replaced.
func (b *TokenBucket) credit(s *bucketState, units int64) {
	for units > 0 {
		old := s.full.Load()
		if s.full.CompareAndSwap(old, max(old-units, alwaysFull)) {
			b.refunded.Add(units) // afterwards: a take that reads less was before the refund
			return
		}
	}
}

func (b *TokenBucket) refusedByJoint(_ time.Time, n int, r Result, _ bool) { b.recordRefusal(r, n) }

func (b *TokenBucket) subscribe(w wakeup)   { b.queue.subscribe(w) }
func (b *TokenBucket) unsubscribe(w wakeup) { b.queue.unsubscribe(w) }

// period returns the time in which an empty bucket fills up, or 0 if the rate is unlimited or Burst
// is Off.
func (b *TokenBucket) period() time.Duration { return b.state.Load().period() }

// currentState returns the current state, after another state was found replaced. It waits for the
// lock until the replacement is complete.
func (b *TokenBucket) currentState() *bucketState {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.state.Load()
}

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
	b.replaceState(at, func(old *bucketState) *bucketState { return newLimitsState(r, old.configuredBurst) })
	return nil
}

func (b *TokenBucket) setBurstAt(at time.Duration, n int) error {
	if n == 0 {
		return errors.New("limiter: Burst is 0, must be at least 1")
	}
	if err := (TokenBucketConfig{Rate: Unlimited(), Burst: n}).Validate(); err != nil {
		return err
	}
	b.replaceState(at, func(old *bucketState) *bucketState { return newLimitsState(old.rate, n) })
	return nil
}

// setLimits changes the rate and the burst in one step. Both are valid; a burst of 0 means the
// default.
func (b *TokenBucket) setLimits(r Rate, burst int) {
	b.replaceState(time.Since(b.epoch), func(old *bucketState) *bucketState {
		return old.withLimits(r, burst, settings.NextVersion())
	})
}

// withLimits returns the state that follows with the limits and their version, or nil if the limits
// stay, and then has the version itself. The lock of the bucket is held.
func (s *bucketState) withLimits(r Rate, burst int, version uint64) *bucketState {
	if s.rate == r && s.configuredBurst == burst {
		s.set = version
		return nil
	}
	next := newBucketState(r, burst)
	next.set = version
	return next
}

// newLimitsState returns the state for limits that are set now, by anyone.
func newLimitsState(r Rate, burst int) *bucketState {
	s := newBucketState(r, burst)
	s.set = settings.NextVersion()
	return s
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
	next.debt, next.chargedAt = old.convertToNext(old.debt), old.chargedAt
	next.full.Store(old.convertToNext(old.full.Swap(replaced)))
	b.state.Store(next)
	b.mu.Unlock()
	b.queue.wakeFirst()
}

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
