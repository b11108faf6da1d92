package weir

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/internal/gatehook"
	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/throttle"
	"github.com/weir-go/weir/window"
)

// throttles are what a gate alone needs of a throttle.
var throttles = gatehook.Throttle.(gatehook.Throttles[throttle.Throttle, window.Outcome])

// Parts are the parts of a gate that [Join] returns. A part may belong to several gates.
type Parts struct {
	// Breaker refuses calls while the service fails. Required.
	Breaker *breaker.Breaker
	// Limiter limits the calls that the gates of this limiter make. Default no limit.
	Limiter limiter.Limiter
	// Remote is a limit that is kept outside this process, such as a limit of a fleet. It is asked
	// last, after Breaker and Limiter have let the call through. Default no limit.
	Remote limiter.Remote
	// Throttle refuses a share of the calls to an overloaded service. It is asked after Breaker, so
	// that it does not count what Breaker refuses, and before Limiter, so that a call that it refuses
	// spends no token. The outcome that is recorded with the gate's permit is recorded with it too.
	// Its name must differ from that of Breaker, whose metrics have the same names. Default none.
	Throttle *throttle.Throttle
	// MaxWait is how long a call may wait for its turn at Limiter and Remote together: see
	// Config.MaxWait. The Limiter and the Remote must be a limiter.WaitLimiter then. Default 0: no
	// call waits.
	MaxWait time.Duration
}

// Validate returns an error that names every fault, or nil if there is none.
func (p Parts) Validate() error {
	var errs []error
	fault := func(format string, args ...any) { errs = append(errs, fmt.Errorf("weir: "+format, args...)) }
	if p.Breaker == nil {
		fault("Breaker is nil, must be a *breaker.Breaker")
	}
	if p.Breaker != nil && p.Throttle != nil && throttles.Name(p.Throttle) == p.Breaker.Name() {
		fault("Throttle has the name of Breaker, %q, must have another: their metrics have the same names", p.Breaker.Name())
	}
	if p.MaxWait < 0 {
		fault("MaxWait is %v, must be at least 0", p.MaxWait)
	}
	if p.MaxWait <= 0 {
		return errors.Join(errs...)
	}
	if p.Limiter == nil && p.Remote == nil {
		fault("MaxWait is %v, must be 0 where there is no Limiter and no Remote", p.MaxWait)
	}
	if _, ok := p.Limiter.(limiter.WaitLimiter); p.Limiter != nil && !ok {
		fault("MaxWait is %v, must be 0 for a Limiter that is no limiter.WaitLimiter (%T)", p.MaxWait, p.Limiter)
	}
	if _, ok := p.Remote.(limiter.WaitLimiter); p.Remote != nil && !ok {
		fault("MaxWait is %v, must be 0 for a Remote that is no limiter.WaitLimiter (%T)", p.MaxWait, p.Remote)
	}
	return errors.Join(errs...)
}

// Join returns a gate of parts that you have made yourself, so that they may belong to other gates
// too. The name appears in errors and metrics. Hold holds this gate and its Limiter, so it also
// affects other gates of the same Limiter, but not other gates of the same Breaker or Remote. Join
// panics with the error of p.Validate if there is one.
func Join(name string, p Parts) *Gate {
	if err := p.Validate(); err != nil {
		panic(err)
	}
	g := newGate(name, new(admissions))
	g.admitted.setMaxWait(p.MaxWait)
	g.breaker, g.limiter, g.remote = p.Breaker, p.Limiter, p.Remote
	g.timed, _ = p.Limiter.(limiter.TimedLimiter)
	g.bare = p.Limiter == nil && p.Remote == nil && p.Throttle == nil
	if g.throttle = p.Throttle; g.throttle != nil {
		g.tell = func(o breaker.Outcome) { throttles.Record(p.Throttle, o) }
	}
	return g
}

// claimRemote is claim for a gate with a remote limit. The remote is asked last, since it is the
// slowest: what happens meanwhile counts.
func (g *Gate) claimRemote(ctx context.Context, now time.Time, permit *breaker.Permit) error {
	if g.limiter != nil {
		if r := g.takeOne(now); !r.OK {
			return g.claimInTurn(ctx, now, r, false, permit)
		}
	}
	r, err := g.remote.Take(ctx, 1)
	now = g.now()
	switch {
	case err != nil:
		g.refundLocal()
		return g.undecided(ctx, g.noRefusal(err))
	case !r.OK:
		return g.claimInTurn(ctx, now, r, g.limiter != nil, permit)
	}
	if held := g.heldUntil(now); !held.IsZero() {
		g.Refund(ctx)
		return g.claimAfterHold(ctx, now, held, permit)
	}
	return g.enter(ctx, now, permit, &g.admitted.allowed)
}

// undecided returns the error of a remote that came to no decision: no call was made, and none was
// refused. It counts only a caller that gave up.
func (g *Gate) undecided(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		g.admitted.cancelled.Add(1)
	}
	return err
}

// noRefusal returns an error of a remote as one that does not match ErrRefused. It may do so, as that
// of a breaker before the remote's store, but it is no refusal of a call to the service.
func (g *Gate) noRefusal(err error) error {
	if errors.Is(err, ErrRefused) {
		return fmt.Errorf("weir: the remote limit of gate %q came to no decision: %v", g.name, err) //nolint:errorlint // must not match
	}
	return err
}

// Refund gives back the tokens of a call that Allow has let through and that is not made after all, if
// the gate's limits can take them back. Record breaker.Ignored with its permit too. Refund may ask a
// Remote, also if ctx has ended.
func (g *Gate) Refund(ctx context.Context) {
	g.refundLocal()
	if r, ok := g.remote.(interface {
		Refund(ctx context.Context, n int) error
	}); ok {
		_ = r.Refund(context.WithoutCancel(ctx), 1) // a limit that cannot be reached has lost a token, and nothing else
	}
}

// refundLocal gives the token of the limiter back.
func (g *Gate) refundLocal() {
	if g.limiter != nil {
		g.limiter.Refund(1)
	}
}
