package weir

import (
	"context"
	"errors"
	"time"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/limiter"
)

// claimInTurn is claim for a call that a limit has refused: it waits for its turn, if it may.
func (g *Gate) claimInTurn(ctx context.Context, now time.Time, r limiter.Result, permit *breaker.Permit) error {
	if g.maxWait() == 0 {
		var until time.Time
		if r.RetryAfter != limiter.Never {
			until = now.Add(r.RetryAfter)
		}
		g.admitted.refused.Add(1)
		return g.admitted.refusal(g.name, limiter.NoPermits, r.Limit, until)
	}
	if err := g.wait(ctx); err != nil {
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
	if err := g.wait(ctx); err != nil {
		return err
	}
	return g.enter(ctx, g.now(), permit, &g.admitted.waited)
}

// errOpened is the cause for which a wait ends when the breaker opens.
var errOpened = errors.New("weir: the breaker has opened")

// wait waits for the tokens of a call. When the breaker opens there is nothing to wait for, and
// the call is refused as those that come later are.
func (g *Gate) wait(ctx context.Context) error {
	waiting, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer hooks.AfterOpen(g.breaker, func() { cancel(errOpened) })()
	began := g.admitted.enter()
	err := g.waitForTokens(waiting)
	g.admitted.leave(began, err == nil)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ErrRefused):
		g.admitted.refused.Add(1)
		return g.withReason(err)
	case errors.Is(context.Cause(waiting), errOpened) && ctx.Err() == nil:
		return g.opened()
	}
	return g.undecided(ctx, err)
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
func (g *Gate) waitForTokens(ctx context.Context) error {
	local, _ := g.limiter.(limiter.WaitLimiter)
	remote, _ := g.remote.(limiter.WaitLimiter)
	for last := g.now().Add(g.maxWait()); ; {
		if local != nil {
			if err := local.WaitAtMost(ctx, 1, last.Sub(g.now())); err != nil {
				return err
			}
		}
		if held := g.heldUntil(g.now()); !held.IsZero() {
			g.refundLocal()
			if err := g.sleepUntil(ctx, held, last); err != nil {
				return err
			}
			continue
		}
		if remote == nil {
			return nil
		}
		if err := remote.WaitAtMost(ctx, 1, max(last.Sub(g.now()), 0)); err != nil {
			g.refundLocal()
			if _, refused := errors.AsType[*limiter.LimitedError](err); refused {
				return err
			}
			return g.noRefusal(err)
		}
		held := g.heldUntil(g.now())
		if held.IsZero() {
			return nil
		}
		g.Refund(ctx)
		if err := g.sleepUntil(ctx, held, last); err != nil {
			return err
		}
	}
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
