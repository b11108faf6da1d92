package weir

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/internal/bridge"
	"github.com/weir-go/weir/internal/gatehook"
	"github.com/weir-go/weir/internal/sentinel"
	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/throttle"
	"github.com/weir-go/weir/window"
)

// ErrRefused is matched, through [errors.Is], by every error with which a gate, a breaker or a
// limiter refuses a call: an open breaker, a limiter without tokens, a full queue. A refused
// call never reaches the service, so it says nothing about it: breakers ignore such errors.
var ErrRefused = sentinel.ErrRefused

// hooks are what a gate alone needs of a breaker.
var hooks = gatehook.Breaker.(gatehook.Hooks[breaker.Breaker, breaker.Permit, breaker.Outcome])

// takeAfter is a quick TakeAt of a gate's own bucket.
var takeAfter = bridge.TakeAfter.(func(*limiter.TokenBucket, time.Duration, int) bool)

// takeBeforeWait is Take of a limiter that is waited for if it refuses.
var takeBeforeWait = bridge.TakeBeforeWait.(func(limiter.Limiter, int) (limiter.Result, bool))

// Gate guards the calls to one service with a limiter and a breaker. Make one with [New], [Join] or
// [NewGroup]; the zero value is not usable. All methods may be called from any number of goroutines.
type Gate struct {
	name     string
	epoch    time.Time
	breaker  *breaker.Breaker
	limiter  limiter.Limiter       // nil for none
	timed    limiter.TimedLimiter  // the limiter, if it can be told what time it is
	remote   limiter.Remote        // nil for none
	throttle *throttle.Throttle    // nil for none
	tell     func(breaker.Outcome) // records an outcome with the throttle
	bare     bool                  // there is nothing but the breaker
	bucket   *limiter.TokenBucket  // the limiter, if it and the breaker reckon from the gate's epoch
	admitted *admissions
	held     *atomic.Int64 // not 0 while hold must be asked
	hold     interface {
		end(at int64) (int64, bool)
		extend(at int64, d time.Duration)
	}
}

// New returns a gate with a breaker of its own and, if c.Rate is set, a token bucket of its own. The
// name appears in errors and metrics. New panics with the error of c.Validate if there is one.
func New(name string, c Config) *Gate {
	if err := c.Validate(); err != nil {
		panic(err)
	}
	g := newGate(name, new(admissions))
	g.admitted.setMaxWait(c.MaxWait)
	g.breaker = breaker.NewAt(name, c.Breaker, g.epoch)
	g.bare = c.Rate == limiter.Rate{}
	if !g.bare {
		g.bucket = limiter.NewTokenBucketAt(c.limit(), g.epoch)
		g.limiter, g.timed = g.bucket, g.bucket
	}
	return g
}

// newGate returns a gate without breaker and limiter.
func newGate(name string, a *admissions) *Gate {
	own := &hold[struct{}]{table: &holds[struct{}]{max: 1}}
	return &Gate{name: name, epoch: time.Now(), admitted: a, held: &own.table.latest, hold: own}
}

// Allow acquires the permit for a call that is no function call, or returns the error that Run would
// return. The outcome is recorded with the permit: see [breaker.Permit].
func (g *Gate) Allow(ctx context.Context) (permit breaker.Permit, err error) {
	err = g.admit(ctx, &permit, false)
	return
}

// Hold refuses all calls for d, because the service has said when to come back. The refusal is a
// [*limiter.LimitedError] whose Reason is limiter.Held. A call whose Config.MaxWait is long enough
// waits instead. Hold never shortens an earlier hold, and does nothing if d is 0 or less.
//
// Hold also holds the limiter if it has such a method, so that calls in its queue wait too. Calls
// that have been admitted are not affected. The packages weirhttp and weirgrpc call Hold with what
// servers ask for; Run and Do do not look for a wait in the error of fn.
func (g *Gate) Hold(d time.Duration) {
	if d <= 0 {
		return
	}
	g.hold.extend(int64(time.Since(g.epoch)), d)
	if l, ok := g.limiter.(interface{ Hold(d time.Duration) }); ok {
		l.Hold(d)
	}
}

// Run calls fn if the gate allows the call, and returns the error of fn. If the gate refuses the call,
// Run returns an error that matches ErrRefused, such as a [*breaker.OpenError] or a
// [*limiter.LimitedError]. If ctx is done already, Run returns the error of ctx and takes and counts
// nothing. An error of a Remote that came to no decision is returned as it is: see [Parts].
//
// If fn panics or calls runtime.Goexit, the call counts as a failure and the panic propagates. Run
// panics if fn is nil.
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

// DoOr is Do with a fallback for refused calls: if the gate refuses the call, DoOr returns the result
// of fallback, which is given the refusal. An error of fn is returned as it is.
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

// admit takes what a call needs: a token and a permit. While the breaker is open no
// token is spent, and a call that is over the limit holds no place of a probe.
func (g *Gate) admit(ctx context.Context, permit *breaker.Permit, missing bool) error {
	if missing {
		panic("weir: the function to call is nil")
	}
	err := ctx.Err()
	if err != nil {
		return err
	}
	held := g.held.Load() != 0
	if g.bare && !held {
		return hooks.Admit(g.breaker, gatehook.NoEscape(permit))
	}
	at := time.Since(g.epoch)
	if g.bucket != nil && !held && hooks.AdmitAfter(g.breaker, at, gatehook.NoEscape(permit)) { // which holds nothing, so that it may come first
		if takeAfter(g.bucket, at, 1) {
			g.admitted.allowed.Add(1)
			return nil
		}
		*permit = breaker.Permit{}
	}
	return g.claim(ctx, g.epoch.Add(at), permit)
}

// claim is admit for all cases.
func (g *Gate) claim(ctx context.Context, now time.Time, permit *breaker.Permit) error {
	if err := hooks.CheckAt(g.breaker, now); err != nil {
		return err
	}
	if g.throttle == nil {
		return g.claimTokens(ctx, now, permit)
	}
	if _, err := g.throttle.Allow(); err != nil { // its permit holds nothing; the breaker's tells it the outcome
		return err
	}
	if err := g.claimTokens(ctx, now, permit); err != nil {
		return err
	}
	hooks.Tell(gatehook.NoEscape(permit), g.tell)
	return nil
}

// claimTokens is claim after the breaker and the throttle were asked.
func (g *Gate) claimTokens(ctx context.Context, now time.Time, permit *breaker.Permit) error {
	held := g.heldUntil(now)
	switch {
	case !held.IsZero():
		return g.claimAfterHold(ctx, now, held, permit)
	case g.remote != nil:
		return g.claimRemote(ctx, now, permit)
	case g.limiter == nil:
		return hooks.AdmitAt(g.breaker, now, gatehook.NoEscape(permit))
	}
	if r := g.takeOne(now); !r.OK {
		return g.claimInTurn(ctx, now, r, false, permit)
	}
	return g.enter(ctx, now, permit, &g.admitted.allowed)
}

// takeOne takes a token. A limiter does not count the refusal of a call that then waits for it.
func (g *Gate) takeOne(now time.Time) limiter.Result {
	if g.maxWait() > 0 {
		if r, ok := takeBeforeWait(g.limiter, 1); ok {
			return r
		}
	}
	return g.take(now, 1)
}

// take takes n tokens at a time, or now if the limiter knows no other.
func (g *Gate) take(now time.Time, n int) limiter.Result {
	if g.timed != nil {
		return g.timed.TakeAt(now, n)
	}
	return g.limiter.Take(n)
}

// enter takes the permit of a call that has its tokens. The breaker may have opened since
// it was looked at.
func (g *Gate) enter(ctx context.Context, now time.Time, permit *breaker.Permit, passed *atomic.Int64) error {
	err := hooks.AdmitAt(g.breaker, now, gatehook.NoEscape(permit))
	if err != nil {
		g.Refund(ctx)
		return err
	}
	passed.Add(1)
	return nil
}

// now is time.Now at little more than half its price.
func (g *Gate) now() time.Time { return g.epoch.Add(time.Since(g.epoch)) }

// Name returns the gate's name.
func (g *Gate) Name() string { return g.name }

// Breaker returns the gate's breaker.
func (g *Gate) Breaker() *breaker.Breaker { return g.breaker }

// Limiter returns the gate's limiter, or nil if there is none.
func (g *Gate) Limiter() limiter.Limiter { return g.limiter }

// Tripped reports whether the breaker has opened and has not closed since: see
// [breaker.Breaker.Tripped].
func (g *Gate) Tripped() bool { return g.breaker.Tripped() }

// Totals returns the calls of the breaker's whole life. Refused counts the calls that the breaker
// refused; Admissions counts those that a limit refused.
func (g *Gate) Totals() window.Totals { return g.breaker.Totals() }

// Latency returns how long the calls of the breaker's window took, if
// breaker.Config.Latency is set.
func (g *Gate) Latency() window.Latency { return g.breaker.Latency() }

// LifetimeLatency returns how long all calls took, if breaker.Config.Latency is set.
func (g *Gate) LifetimeLatency() window.Latency { return g.breaker.LifetimeLatency() }

// minRetry is the shortest wait that a refusal asks for.
const minRetry = time.Millisecond

// RetryAfter returns how long to wait before retrying: the result of the first RetryAfter method in
// err's tree, or 0 if there is none. For a refusal it is at least a millisecond, so that a caller that
// waits and retries does not spin, and limiter.Never if the call will never be let through.
func RetryAfter(err error) time.Duration {
	var e interface{ RetryAfter() time.Duration }
	if !errors.As(err, &e) {
		return 0
	}
	d := e.RetryAfter()
	if d < minRetry && errors.Is(err, ErrRefused) {
		return minRetry
	}
	return d
}
