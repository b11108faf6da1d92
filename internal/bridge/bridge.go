// Package bridge gives other packages of this module access to package limiter beyond its API.
// Package limiter sets the variables when it is initialized.
package bridge

import (
	"context"
	"time"

	"github.com/weir-go/weir/internal/places"
	"github.com/weir-go/weir/internal/waiting"
)

// Source is a limiter as its queue uses it.
type Source interface {
	// Acquire takes n tokens without regard to the queue, or returns how long to wait before a
	// retry.
	Acquire(n int) (retryAfter time.Duration, ok bool)
	// Predict returns what Acquire would return after ahead other tokens had been taken. It takes
	// nothing.
	Predict(ahead int64, n int) (retryAfter time.Duration, ok bool)
}

// Queue lets callers wait for a limiter in order of arrival.
type Queue interface {
	// Wait returns nil once the source has taken n tokens for the caller. Its errors are those of
	// limiter.WaitLimiter.
	Wait(ctx context.Context, n int, maxWait time.Duration) error
	// HasWaiters reports whether a caller waits.
	HasWaiters() bool
	// WakeFirst makes the first waiter try again.
	WakeFirst()
}

// Waiter is a call of a gate that waits: see [waiting.Waiter].
type Waiter interface {
	Interrupt(c waiting.Cause)
	Cause() waiting.Cause
	Clear()
	Block(done, changed <-chan struct{}, d time.Duration) waiting.Cause
	Context(ctx context.Context) (interrupted context.Context, release context.CancelFunc)
}

// Limits is what a limiter says of its configuration. A field that is not known is 0.
type Limits struct {
	Period  time.Duration // to which the limit refers
	MaxKeys int           // the GroupConfig.MaxKeys that leaves no room for the key
}

// Constructors and functions of package limiter. Parameters of type any stand for types of that
// package.
var (
	// NewQueue returns a queue of at most maxWaiters callers, or without a bound if that is 0.
	NewQueue func(s Source, maxWaiters int) Queue
	// Uncounted returns a limiter.Group[K] as a value with the methods TakeAt and LookAt, each a
	// func(time.Time, K, int) limiter.Result, which count nothing in its statistics. LookAt returns
	// what TakeAt would return, and takes nothing. Its time must have been read from the clock.
	// PutBackAt, a func(t, taken time.Time, key K, n int), gives back n tokens that were taken at
	// the time taken.
	Uncounted func(group any) any
	// CopyKeys makes a limiter.Group store the result of a func(K) K instead of each new key, for
	// keys that are part of something large. It must be called before the group is used.
	CopyKeys func(group, copied any)
	// Describe says what is known of a limiter.
	Describe func(limiter any) Limits
	// GroupFigures returns the number of keys that a limiter.Group has evicted, the number of
	// requests for which it had no room, the limit of a key and the time to which it refers.
	GroupFigures func(group any) (evictions, noRoom int64, limit int, period time.Duration)
	// TakeFast is a func(*limiter.TokenBucket, time.Duration, int) bool. It takes tokens if it can
	// do so quickly, and reports whether it has taken them. The time counts from the time given to
	// NewTokenBucketAt. If TakeFast reports false, TakeAt decides.
	TakeFast any
	// Taken is a func(*limiter.TokenBucket, time.Duration, int) limiter.Reservation. It returns
	// what TakeFast has taken.
	Taken any
	// Reserve is a func(l limiter.Limiter, t time.Time, n int, waits bool) limiter.Reservation. It
	// is limiter.Reserve at the time t. If waits is set, the caller waits after a refusal, and a
	// refusal is not counted, because the wait is counted.
	Reserve any
	// Renew is a func(l limiter.Limiter, t time.Time, n int) limiter.Reservation. It is like
	// Reserve, but does not count the request, because tokens that were counted were given back.
	Renew any
	// NewWaiter returns a waiter for a call of a gate.
	NewWaiter func() Waiter
	// WaitReserve is a func(ctx context.Context, w Waiter, l limiter.WaitLimiter, refused
	// limiter.Result, maxWait time.Duration) (limiter.Reservation, error). It waits for one token
	// as WaitAtMost does, after l has given the answer refused. w must be one of NewWaiter.
	WaitReserve any
	// SetLimits is a func(*limiter.TokenBucket, limiter.Rate, int). It is SetRate and SetBurst in
	// one step, with a valid rate and a valid burst, of which 0 means the default.
	SetLimits any
	// Interval returns the time after which a limiter has one token more, or 0 if it is not known.
	// It is called for each refusal.
	Interval func(limiter any) time.Duration
	// NameMaxWait makes the text of a new *limiter.LimitedError say that the MaxWait of a gate was
	// too short, unless it is 0.
	NameMaxWait func(limitedError any, maxWait time.Duration)
	// Spread makes RetryAfter of a new *limiter.LimitedError give each caller a different moment.
	Spread func(limitedError any, p *places.Places)
	// PerSecond returns a limiter.Rate as a number per second.
	PerSecond func(rate any) float64
)

// Methods of package limiter at a given time, for replays.
var (
	// ChangeAt changes the limiter.Rate and the burst of a *limiter.TokenBucket.
	ChangeAt func(bucket any, t time.Time, rate any, burst int) error
	// TokensAt returns the tokens of a *limiter.TokenBucket.
	TokensAt func(bucket any, t time.Time) float64
	// ReserveAt is Reserve of a *limiter.TokenBucket, and returns a *limiter.Reservation.
	ReserveAt func(bucket any, t time.Time, n int, maxWait time.Duration) any
	// CancelAt is Cancel of a *limiter.Reservation.
	CancelAt func(reservation any, t time.Time) bool
)
