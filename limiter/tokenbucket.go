package limiter

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// TokenBucketConfig configures a [TokenBucket].
type TokenBucketConfig struct {
	// Rate is how fast tokens come. Must be given.
	Rate Rate
	// Burst is the most tokens that gather, and so the most that can be taken at once, up to 2^40. Off
	// admits nothing. Default: the tokens of one second, at least 1.
	Burst int
	// MaxWaiters is the most callers that may wait at once; the next gets ErrQueueFull. Default: no
	// bound.
	MaxWaiters int
	// Name stands in errors and metrics. A bucket with a name keeps statistics and is a [stat.Source].
	// Default: no name and no statistics.
	Name string
	// Named is what a bucket with a name does besides. Default [NamedConfig]'s own.
	Named NamedConfig
}

// Off is a burst of no token: nothing is admitted, unless the rate is Unlimited, when everything is.
const Off = -1

// maxBurst bounds a bucket, so that rates of many tokens can still be counted finely.
const maxBurst = 1 << 40

// Validate returns nil for a configuration that makes sense, and otherwise an error that names all faults.
func (c TokenBucketConfig) Validate() error {
	faults := []error{c.Rate.Validate()}
	if c.Burst < Off {
		faults = append(faults, fmt.Errorf("limiter: Burst is %d, must be at least 1 (or 0 for the default, or Off)", c.Burst))
	}
	if int64(c.Burst) > maxBurst {
		faults = append(faults, fmt.Errorf("limiter: Burst is %d, must be at most %d", c.Burst, int64(maxBurst)))
	}
	if c.MaxWaiters < 0 {
		faults = append(faults, fmt.Errorf("limiter: MaxWaiters is %d, must be at least 1 (or 0 for no bound)", c.MaxWaiters))
	}
	faults = append(faults, c.Named.validateFor(c.Name))
	return errors.Join(faults...)
}

// TokenBucket holds up to Burst tokens, which come at a constant rate; a request takes
// its tokens or is refused. It starts full. In any span of time it admits at most Burst and what
// the rate yields in that span, to two nanoseconds, or to one part in 2^59 of the time in which it fills, where that is
// longer than 18 years. RetryAfter is minimal likewise.
//
// It is the limiter of first choice: the leaky bucket as a meter, the funnel and redis-cell's GCRA are the
// same machine seen from other sides. Its whole state is one word, the time at which the bucket
// will be full again ("theoretical arrival time" in ATM Forum TM 4.0, where the
// algorithm comes from), so a refusal writes nothing and an idle bucket costs nothing.
//
// Rates are kept exactly: callers at the exact cadence of the rate are never refused, and
// after years not a token too many has been admitted. A TokenBucket lives for 73 years
// (29 where the rate is above two a nanosecond), after which no more tokens come.
//
// All methods are safe for concurrent use; only Wait and WaitAtMost block.
type TokenBucket struct {
	*statistics
	epoch time.Time
	terms atomic.Pointer[terms]
	line  queue

	mu     sync.Mutex // held while terms are being replaced, and while something is reserved
	serial uint64     // of the last reservation
}

// NewTokenBucket makes a full bucket. It panics with the error of c.Validate where there is one.
func NewTokenBucket(c TokenBucketConfig) *TokenBucket { return NewTokenBucketAt(c, time.Now()) }

// NewTokenBucketAt makes a full bucket that is driven by given times, from t0 on.
func NewTokenBucketAt(c TokenBucketConfig, t0 time.Time) *TokenBucket {
	if err := c.Validate(); err != nil {
		panic(err)
	}
	b := &TokenBucket{epoch: t0}
	b.line.max = c.MaxWaiters
	b.terms.Store(newTerms(c.Rate, c.Burst))
	b.statistics = newStatistics(c.Name, c.Named, func() (Result, time.Duration) { return b.try(0), b.period() })
	return b
}

// Take takes n tokens, all or none. In shadow mode the result is OK also where none were taken, with the numbers of the
// refusal.
func (b *TokenBucket) Take(n int) (r Result) {
	b.take(&r, time.Since(b.epoch), n)
	if b.statistics != nil {
		b.count(&r, n)
	}
	return r
}

// TakeAt is Take at a given time.
func (b *TokenBucket) TakeAt(t time.Time, n int) (r Result) {
	b.take(&r, t.Sub(b.epoch), n)
	if b.statistics != nil {
		b.count(&r, n)
	}
	return r
}

// takeAfter takes n tokens at a time that is given as what has passed since the time of NewTokenBucketAt, if that is
// simple. It reports whether it did; where it did not, TakeAt knows more. It costs less than that: for a gate.
func (b *TokenBucket) takeAfter(d time.Duration, n int) bool {
	return b.statistics == nil && b.line.ahead.Load() == 0 && b.terms.Load().admit(d, n)
}

// Tokens is how many tokens there are, with fractions: below 0 where they are owed to reservations, and not above while
// the bucket is held.
func (b *TokenBucket) Tokens() float64 { return b.tokens(b.now()) }

// TokensAt is Tokens at a given time.
func (b *TokenBucket) TokensAt(t time.Time) float64 { return b.tokens(t.Sub(b.epoch)) }

// Refund gives n tokens back, as if they had never been taken.
func (b *TokenBucket) Refund(n int) { b.giveBack(b.owed(n)) }

func (b *TokenBucket) giveBack(n int) {
	if n < 1 {
		return
	}
	for s := b.terms.Load(); !s.giveBack(n); s = b.current() {
	}
	b.line.poke()
}

// Wait takes n tokens as soon as there are that many, and returns nil then. Callers are served in
// order of arrival; one that gives up has taken nothing. While anybody waits, Take is refused.
//
// A context that is done already gives its error at once. One whose deadline comes before
// the tokens can be there gives a *LimitedError at once that matches context.DeadlineExceeded; a queue
// that is full gives one that matches ErrQueueFull; what can never be had gives one whose
// RetryAfter is Never. A context cancelled while waiting gives its error.
func (b *TokenBucket) Wait(ctx context.Context, n int) error { return b.WaitAtMost(ctx, n, Never) }

// WaitAtMost is Wait that gives up at once, with a *LimitedError, where it would take longer than maxWait.
func (b *TokenBucket) WaitAtMost(ctx context.Context, n int, maxWait time.Duration) error {
	if b.statistics != nil {
		return b.waitFor(ctx, b, n, maxWait)
	}
	return b.waitAtMost(ctx, n, maxWait)
}

// try, waitAtMost and the other methods below count nothing.
func (b *TokenBucket) try(n int) (r Result) {
	b.take(&r, b.now(), n)
	return r
}

func (b *TokenBucket) waitAtMost(ctx context.Context, n int, maxWait time.Duration) error {
	// The queue would find the same, but by way of an interface, and so with a Result on the heap.
	if n > 0 && b.line.ahead.Load() == 0 && ctx.Err() == nil {
		var r Result
		if b.serve(&r, b.now(), n); r.OK {
			return nil
		}
	}
	return b.line.wait(ctx, b, request{n: n, limit: maxWait})
}

// take is the hot path. Results are filled in where they lie, because the compiler copies a struct
// of five fields through memory at each return, which cost as much as all the arithmetic here.
func (b *TokenBucket) take(r *Result, at time.Duration, n int) {
	if b.line.ahead.Load() != 0 {
		b.look(r, at, 0, n)
		return
	}
	b.serve(r, at, n)
}

// serve takes n tokens, whoever waits.
func (b *TokenBucket) serve(r *Result, at time.Duration, n int) {
	for s := b.terms.Load(); !s.take(r, at, n); s = b.current() {
	}
}

// after tells how things stand for one who comes after ahead other tokens.
func (b *TokenBucket) after(r *Result, at time.Duration, ahead int64, n int) {
	for s := b.terms.Load(); !s.after(r, at, ahead, n); s = b.current() {
	}
}

// look tells what Take answers, without taking anything, once ahead other tokens have been taken.
func (b *TokenBucket) look(r *Result, at time.Duration, ahead int64, n int) {
	waiting := b.line.ahead.Load()
	b.after(r, at, waiting+ahead, n)
	if waiting != 0 {
		stepBack(r, n)
	}
}

func (b *TokenBucket) peek(r *Result, t time.Time, ahead int64, n int) {
	b.look(r, t.Sub(b.epoch), ahead, n)
}

func (b *TokenBucket) attempt(t time.Time, n int) (r Result) {
	b.take(&r, t.Sub(b.epoch), n)
	return r
}

func (b *TokenBucket) refuse(t time.Time, n int, _ bool) { b.countRefusal(b, t, n) }

func (b *TokenBucket) watch(l bell)   { b.line.watch(l) }
func (b *TokenBucket) unwatch(l bell) { b.line.unwatch(l) }

func (b *TokenBucket) tokens(at time.Duration) float64 {
	for s := b.terms.Load(); ; s = b.current() {
		if full := s.full.Load(); full != replaced {
			return s.level(full, at)
		}
	}
}

// period is the time in which an empty bucket becomes full: 0 where the rate is unlimited or nothing is admitted.
func (b *TokenBucket) period() time.Duration { return b.terms.Load().period() }

func (b *TokenBucket) now() time.Duration { return time.Since(b.epoch) }

// current returns the terms that took the place of some that were found replaced.
func (b *TokenBucket) current() *terms {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.terms.Load()
}
