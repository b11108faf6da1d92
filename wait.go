package weir

import (
	"context"
	"errors"
	"time"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/limiter"
)

// claimInTurn is claim for a call that a limit has refused: it waits for its turn, if it may. If
// hasToken is set, the call has its token of the limiter, and the remote has refused it.
func (g *Gate) claimInTurn(ctx context.Context, now time.Time, r limiter.Result, hasToken bool, permit *breaker.Permit) error {
	if g.maxWait() == 0 {
		if hasToken {
			g.refundLocal()
		}
		var until time.Time
		if r.RetryAfter != limiter.Never {
			until = now.Add(r.RetryAfter)
		}
		g.admitted.refused.Add(1)
		return g.admitted.refusal(g.name, limiter.NoPermits, r.Limit, until)
	}
	if err := g.wait(ctx, hasToken); err != nil {
		return err
	}
	return g.enter(ctx, g.now(), permit, &g.admitted.waited)
}

// claimAfterHold is claim for a call that comes during a hold. It waits until the hold has ended and
// there are tokens. It refuses at once if the hold is longer than MaxWait.
func (g *Gate) claimAfterHold(ctx context.Context, now, held time.Time, permit *breaker.Permit) error {
	if held.Sub(now) > g.maxWait() {
		g.admitted.refused.Add(1)
		return g.admitted.refusal(g.name, limiter.Held, 0, held)
	}
	if err := g.wait(ctx, false); err != nil {
		return err
	}
	return g.enter(ctx, g.now(), permit, &g.admitted.waited)
}

// Causes for which a wait ends.
var (
	errOpened    = errors.New("weir: the breaker has opened")
	errForgotten = errors.New("weir: the key was forgotten")
)

// wait waits for the tokens of a call. If hasToken is set, the call has its token of the limiter
// already. If the breaker opens meanwhile, the call is refused.
func (g *Gate) wait(ctx context.Context, hasToken bool) error {
	began := g.admitted.enter()
	last := g.now().Add(g.maxWait())
	err, cause := g.waitWhileClosed(ctx, last, hasToken)
	for errors.Is(cause, errForgotten) { // the key has a new breaker and a new limit
		err, cause = g.waitWhileClosed(ctx, last, false)
	}
	g.admitted.leave(began, err == nil)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ErrRefused):
		g.admitted.refused.Add(1)
		return g.withReason(err)
	case errors.Is(cause, errOpened):
		return g.opened()
	}
	return g.undecided(ctx, err)
}

// waitWhileClosed is waitForTokens that ends when the breaker opens or the gate's key is forgotten. In
// these cases cause says so.
func (g *Gate) waitWhileClosed(ctx context.Context, last time.Time, hasToken bool) (err, cause error) {
	waiting, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer hooks.AfterOpen(g.breaker, func(opened bool) {
		if opened {
			cancel(errOpened)
		} else {
			cancel(errForgotten)
		}
	})()
	err = g.waitForTokens(waiting, last, hasToken)
	if err != nil && !errors.Is(err, ErrRefused) && ctx.Err() == nil {
		cause = context.Cause(waiting)
	}
	return err, cause
}

// opened is the breaker's refusal of a call that it opened over.
func (g *Gate) opened() error {
	if err := hooks.CheckAt(g.breaker, g.now()); err != nil {
		return err
	}
	return hooks.Refuse(g.breaker, errOpened.Error())
}

// waitForTokens waits until the call has its tokens and there is no hold. It looks for a hold again
// after each wait, because not every limit can be held, and a hold may begin while the call waits.
func (g *Gate) waitForTokens(ctx context.Context, last time.Time, hasToken bool) error {
	for ; ; hasToken = false {
		if !hasToken {
			if err := g.waitForLimiter(ctx, last); err != nil {
				return err
			}
		}
		held := g.heldUntil(g.now())
		if !held.IsZero() {
			g.refundLocal()
		} else {
			if err := g.waitForRemote(ctx, last); err != nil {
				g.refundLocal()
				return err
			}
			if held = g.heldUntil(g.now()); held.IsZero() {
				return nil
			}
			g.Refund(ctx)
		}
		if err := g.sleepUntil(ctx, held, last); err != nil {
			return err
		}
	}
}

// waitForLimiter waits for a token of the limiter until last.
func (g *Gate) waitForLimiter(ctx context.Context, last time.Time) error {
	if l, ok := g.limiter.(limiter.WaitLimiter); ok {
		return l.WaitAtMost(ctx, 1, last.Sub(g.now()))
	}
	return nil
}

// waitForRemote waits for a token of the remote until last.
func (g *Gate) waitForRemote(ctx context.Context, last time.Time) error {
	l, ok := g.remote.(limiter.WaitLimiter)
	if !ok {
		return nil
	}
	err := l.WaitAtMost(ctx, 1, max(last.Sub(g.now()), 0))
	if _, refused := errors.AsType[*limiter.LimitedError](err); refused {
		return err
	}
	return g.noRefusal(err)
}

// sleepUntil sleeps until a hold has ended. It refuses at once if that is later than the call may wait.
func (g *Gate) sleepUntil(ctx context.Context, held, last time.Time) error {
	if deadline, ok := ctx.Deadline(); ok && deadline.Before(held) {
		return &limiter.LimitedError{Name: g.name, Reason: limiter.PastDue, Until: held}
	}
	if held.After(last) {
		return &limiter.LimitedError{Name: g.name, Reason: limiter.Held, Until: held}
	}
	return sleep(ctx, held.Sub(g.now()))
}

func (g *Gate) maxWait() time.Duration { return time.Duration(g.admitted.maxWait.Load()) }

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// withReason adds the gate's name to the limiter's error. If a hold is why there was no token in time,
// the reason is limiter.Held.
func (g *Gate) withReason(err error) error {
	e, ok := errors.AsType[*limiter.LimitedError](err)
	if !ok {
		return err
	}
	told := *e
	if told.Name == "" {
		told.Name = g.name
	}
	tooLong := (e.Reason == limiter.NoPermits || e.Reason == limiter.WaitTooLong) && !e.Until.IsZero()
	if held := g.heldUntil(g.now()); tooLong && !held.IsZero() {
		told = limiter.LimitedError{Name: g.name, Reason: limiter.Held, Until: e.Until}
		if held.After(e.Until) {
			told.Until = held
		}
	}
	return &told
}

// heldUntil returns when the hold ends, or the zero time if there is none.
func (g *Gate) heldUntil(now time.Time) (t time.Time) {
	if g.held.Load() == 0 {
		return t
	}
	if end, held := g.hold.end(int64(now.Sub(g.epoch))); held {
		t = g.epoch.Add(time.Duration(end))
	}
	return t
}
