package weir

import (
	"context"
	"errors"
	"time"

	"github.com/weir-go/weir/limiter"
)

// queue waits for a token, if the caller may, after the limiter has refused one.
func (g *Gate) queue(ctx context.Context, now time.Time, r limiter.Result) error {
	if w, ok := g.limiter.(limiter.WaitLimiter); ok && g.maxWait > 0 {
		return g.wait(ctx, w)
	}
	g.admitted.refused.Add(1)
	var until time.Time
	if r.RetryAfter != limiter.Never {
		until = now.Add(r.RetryAfter)
	}
	return g.admitted.refusal(g.name, limiter.NoPermits, r.Limit, until)
}

// waitForHold waits until a hold has ended and there is a token. It refuses at once if that takes
// longer than MaxWait.
func (g *Gate) waitForHold(ctx context.Context, now, held time.Time) error {
	if w, ok := g.limiter.(limiter.WaitLimiter); ok && held.Sub(now) <= g.maxWait {
		return g.wait(ctx, w)
	}
	g.admitted.refused.Add(1)
	return g.admitted.refusal(g.name, limiter.Held, 0, held)
}

// errOpened is the cause for which a wait ends when the breaker opens.
var errOpened = errors.New("weir: the breaker has opened")

// wait waits for a token. When the breaker opens there is nothing to wait for, and
// the call is refused as those that come later are.
func (g *Gate) wait(ctx context.Context, w limiter.WaitLimiter) error {
	waiting, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer g.breaker.AfterOpen(func() { cancel(errOpened) })()
	began := g.admitted.enter()
	err := g.waitForToken(waiting, w)
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
	g.admitted.cancelled.Add(1)
	return err
}

// opened is the breaker's refusal of a call that it opened over.
func (g *Gate) opened() error {
	if err := g.breaker.Check(); err != nil {
		return err
	}
	return g.breaker.Refuse(errOpened.Error())
}

// waitForToken waits until there is a token and no hold. It looks for a hold again after each token,
// because not every limiter can be held, and a hold may begin while the call waits.
func (g *Gate) waitForToken(ctx context.Context, w limiter.WaitLimiter) error {
	now := g.now()
	for last := now.Add(g.maxWait); ; now = g.now() {
		if err := w.WaitAtMost(ctx, 1, last.Sub(now)); err != nil {
			return err
		}
		now = g.now()
		end := g.heldUntil(now)
		if end.IsZero() {
			return nil
		}
		g.limiter.Refund(1)
		if deadline, ok := ctx.Deadline(); ok && deadline.Before(end) {
			return &limiter.LimitedError{Name: g.name, Reason: limiter.PastDue, Until: end}
		}
		if end.After(last) {
			return &limiter.LimitedError{Name: g.name, Reason: limiter.Held, Until: end}
		}
		if err := sleep(ctx, end.Sub(now)); err != nil {
			return err
		}
	}
}

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
