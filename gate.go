package weir

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/stat"
	"github.com/weir-go/weir/window"
)

// ErrRefused is matched by every error with which a gate refuses a call. It is
// stat.ErrRefused.
var ErrRefused = stat.ErrRefused

// Config says how a gate throttles and when it stops. The zero value limits
// nothing and has a breaker with its defaults.
type Config struct {
	// Rate is how many calls may pass in a span of time. Default no limit.
	Rate limiter.Rate
	// Burst is how many calls may pass at once. Default those of one second, at least 1.
	Burst int
	// MaxWait is how long a call may wait for its turn. When the breaker opens those
	// who wait are refused. Default 0: nobody waits.
	MaxWait time.Duration
	// Waits keeps a histogram of how long those calls waited that passed after a wait, of
	// 2 kB. Default false.
	Waits bool
	// Breaker says when calls stop. Default breaker.Config's own.
	Breaker breaker.Config
}

// Validate returns an error that names every field that is out of bounds, and nil
// where there is none.
func (c Config) Validate() error {
	var errs []error
	fault := func(format string, args ...any) { errs = append(errs, fmt.Errorf("weir: "+format, args...)) }
	if c.MaxWait < 0 {
		fault("MaxWait is %v, must be at least 0", c.MaxWait)
	}
	if c.Rate.IsZero() {
		if c.Burst != 0 {
			fault("Burst is %d, must be 0 where there is no Rate", c.Burst)
		}
		if c.MaxWait > 0 {
			fault("MaxWait is %v, must be 0 where there is no Rate", c.MaxWait)
		}
		if c.Waits {
			fault("Waits is true, must be false where there is no Rate")
		}
	} else if err := c.limit().Validate(); err != nil {
		errs = append(errs, fmt.Errorf("weir: %w", err))
	}
	if err := c.Breaker.Validate(); err != nil {
		errs = append(errs, fmt.Errorf("weir: Breaker: %w", err))
	}
	return errors.Join(errs...)
}

// times returns what counts waits, nil where that is not asked for.
func (c Config) times() *window.Times {
	if !c.Waits {
		return nil
	}
	return new(window.Times)
}

func (c Config) limit() limiter.Config { return limiter.Config{Rate: c.Rate, Burst: c.Burst} }

// Gate is a limiter and a breaker before one service. All its methods may be
// called from any number of goroutines.
type Gate struct {
	name     string
	epoch    time.Time
	maxWait  time.Duration
	breaker  *breaker.Breaker
	limiter  limiter.Limiter // nil for none
	bucket   *limiter.TokenBucket
	admitted *admissions
}

// New returns a gate with a breaker and, where c.Rate is set, a token bucket of
// its own. The name stands in errors and metrics. New panics with the error of
// c.Validate if there is one.
func New(name string, c Config) *Gate {
	if err := c.Validate(); err != nil {
		panic(err)
	}
	var l limiter.Limiter
	if !c.Rate.IsZero() {
		l = limiter.NewTokenBucket(c.limit())
	}
	g := Join(name, breaker.New(name, c.Breaker), l)
	g.maxWait = c.MaxWait
	g.admitted.waits = c.times()
	return g
}

// Join returns a gate of your own breaker and limiter, which may stand in other
// gates too. Without a limiter (nil) nothing is throttled; calls that are over the
// limit are refused, not queued. Join panics if b is nil.
func Join(name string, b *breaker.Breaker, l limiter.Limiter) *Gate {
	if b == nil {
		panic("weir: Join needs a breaker")
	}
	bucket, _ := l.(*limiter.TokenBucket)
	return &Gate{name: name, epoch: time.Now(), breaker: b, limiter: l, bucket: bucket, admitted: new(admissions)}
}

// Allow lets a call pass or refuses it, for those who make it themselves: the permit
// is to be reported, see [breaker.Permit]. Otherwise it is as Run.
func (g *Gate) Allow(ctx context.Context) (permit breaker.Permit, err error) {
	err = g.admit(ctx, &permit, false)
	return
}

// Hold makes the limiter let nothing through for d, if it is one that can hold, as a
// TokenBucket is: what to do when the service has said when to come back.
func (g *Gate) Hold(d time.Duration) {
	if l, ok := g.limiter.(interface{ Hold(d time.Duration) }); ok {
		l.Hold(d)
	}
}

// Run calls fn if the gate lets it pass, and returns its error. Otherwise fn has
// not been called and the error matches ErrRefused: a [*breaker.OpenError] or a
// [*limiter.LimitedError]. Where ctx is done already, Run returns ctx's error and
// nothing is taken or counted.
//
// A panic of fn counts as a failure and goes on up untouched; so does the end of
// its goroutine. Run panics if fn is nil.
func (g *Gate) Run(ctx context.Context, fn func(context.Context) error) error {
	var permit breaker.Permit
	if err := g.admit(ctx, &permit, fn == nil); err != nil {
		return err
	}
	return permit.Run(ctx, fn)
}

// Do is [Gate.Run] for a function that returns a value.
func Do[T any](ctx context.Context, g *Gate, fn func(context.Context) (T, error)) (v T, err error) {
	var permit breaker.Permit
	if err = g.admit(ctx, &permit, fn == nil); err != nil {
		return v, err
	}
	return call(ctx, &permit, fn)
}

// DoOr is Do that diverts what the gate refuses: it then returns what fallback
// makes of the refusal. An error of fn itself is returned as it is.
func DoOr[T any](ctx context.Context, g *Gate, fn func(context.Context) (T, error), fallback func(context.Context, error) (T, error)) (v T, err error) {
	var permit breaker.Permit
	err = g.admit(ctx, &permit, fn == nil || fallback == nil)
	switch {
	case err == nil:
		return call(ctx, &permit, fn)
	case errors.Is(err, ErrRefused):
		return fallback(ctx, err)
	}
	return v, err
}

func call[T any](ctx context.Context, permit *breaker.Permit, fn func(context.Context) (T, error)) (v T, err error) {
	err = permit.Run(ctx, func(ctx context.Context) (err error) {
		v, err = fn(ctx)
		return err
	})
	return v, err
}

// admit takes what a call needs: a token, then a permit. The breaker is looked at
// first, so that while it is open no token is spent; the permit is taken last, so
// that a call that is over the limit holds no place of a probe.
func (g *Gate) admit(ctx context.Context, permit *breaker.Permit, missing bool) error {
	if missing {
		panic("weir: the function to call is nil")
	}
	err := ctx.Err()
	if err != nil {
		return err
	}
	if g.limiter == nil {
		return g.breaker.Admit(permit)
	}
	now := g.now()
	if err = g.breaker.CheckAt(now); err != nil {
		return err
	}
	passed := &g.admitted.allowed
	var refused limiter.Result
	if !g.take(now, &refused) {
		if err = g.queue(ctx, now, refused); err != nil {
			return err
		}
		passed, now = &g.admitted.waited, g.now()
	}
	if err = g.breaker.AdmitAt(now, permit); err != nil { // it has opened since
		g.limiter.Refund(1)
		return err
	}
	passed.Add(1)
	return nil
}

// take takes a token, or fills in the refusal.
func (g *Gate) take(now time.Time, refused *limiter.Result) bool {
	if g.bucket != nil {
		return g.bucket.AdmitAt(now, 1, refused)
	}
	*refused = g.limiter.TakeAt(now, 1)
	return refused.OK
}

// queue waits for a token, if the caller may, after the limiter has refused one.
func (g *Gate) queue(ctx context.Context, now time.Time, r limiter.Result) error {
	if w, ok := g.limiter.(limiter.Waiter); ok && g.maxWait > 0 {
		return g.wait(ctx, w)
	}
	g.admitted.refused.Add(1)
	return g.admitted.refusal(g.name, now, r)
}

// errOpened is the cause for which a wait ends when the breaker opens.
var errOpened = errors.New("weir: the breaker has opened")

// wait waits for a token. When the breaker opens there is nothing to wait for, and
// the call is refused as those that come later are.
func (g *Gate) wait(ctx context.Context, w limiter.Waiter) error {
	waiting, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer g.breaker.AfterOpen(func() { cancel(errOpened) })()
	began := g.admitted.enter()
	err := w.TryWait(waiting, 1, g.maxWait)
	g.admitted.leave(began, err == nil)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ErrRefused):
		g.admitted.refused.Add(1)
		return g.named(err)
	case errors.Is(context.Cause(waiting), errOpened) && ctx.Err() == nil:
		return g.opened()
	}
	g.admitted.cancelled.Add(1)
	return err
}

// opened is the breaker's refusal of a call that it opened over.
func (g *Gate) opened() error {
	if err := g.breaker.Check(); err != nil {
		return err
	}
	return &breaker.OpenError{Name: g.breaker.Name(), State: breaker.Open, Reason: errOpened.Error(), Until: time.Now()}
}

// named puts the gate's name into the limiter's error.
func (g *Gate) named(err error) error {
	if e, ok := errors.AsType[*limiter.LimitedError](err); ok && e.Name == "" {
		named := *e
		named.Name = g.name
		return &named
	}
	return err
}

// now is time.Now at little more than half its price.
func (g *Gate) now() time.Time { return g.epoch.Add(time.Since(g.epoch)) }

// Name returns the gate's name.
func (g *Gate) Name() string { return g.name }

// Breaker returns the gate's breaker.
func (g *Gate) Breaker() *breaker.Breaker { return g.breaker }

// Limiter returns the gate's limiter, nil where there is none.
func (g *Gate) Limiter() limiter.Limiter { return g.limiter }

// State returns the breaker's state.
func (g *Gate) State() breaker.State { return g.breaker.State() }

// IsOpen reports whether the breaker is open.
func (g *Gate) IsOpen() bool { return g.breaker.IsOpen() }

// Counts returns the calls that the breaker judges: see breaker.Counts.
func (g *Gate) Counts() window.Counts { return g.breaker.Counts() }

// Totals returns the calls of the breaker's whole life. Refused are those that the
// breaker refused; what the limiter refused is in Admissions.
func (g *Gate) Totals() window.Totals { return g.breaker.Totals() }

// Latency returns how long the calls of the breaker's window took, if
// breaker.Config.Latency is set.
func (g *Gate) Latency() window.Latency { return g.breaker.Latency() }

// LifetimeLatency returns how long all calls took, if breaker.Config.Latency is set.
func (g *Gate) LifetimeLatency() window.Latency { return g.breaker.LifetimeLatency() }

// RetryAfter returns how long to wait before a refused call may be tried again, as
// any error in the tree of err says that has a method RetryAfter() time.Duration;
// 0 where none has. It is limiter.Never for what will never be let through.
func RetryAfter(err error) time.Duration {
	var e interface{ RetryAfter() time.Duration }
	if errors.As(err, &e) {
		return e.RetryAfter()
	}
	return 0
}
