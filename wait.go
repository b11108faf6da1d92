package weir

import (
	"context"
	"errors"
	"time"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/inflight"
	"github.com/weir-go/weir/limiter"
)

// acquired is what a call has before it waits.
type acquired uint8

const (
	nothing acquired = iota
	token            // of the limiter
	tokens           // of the limiter and of the remote
)

// waitOrRefuse continues a call that the limiter or the remote has refused.
func (g *Gate) waitOrRefuse(ctx context.Context, now time.Time, r limiter.Result, has acquired, permit *breaker.Permit) error {
	if g.maxWait() > 0 {
		return g.waitAndAcquire(ctx, has, permit)
	}
	if has == token {
		g.refundLocal()
	}
	var until time.Time
	if r.RetryAfter != limiter.Never {
		until = now.Add(r.RetryAfter)
	}
	g.admissions.refused.Add(1)
	return g.admissions.refusal(g.name, limiter.NoTokens, r.Limit, until)
}

// waitOutHold continues a call that arrives during a hold. It waits for the end of the hold and for
// the tokens. It refuses the call at once if the hold is longer than MaxWait.
func (g *Gate) waitOutHold(ctx context.Context, now, held time.Time, permit *breaker.Permit) error {
	if held.Sub(now) > g.maxWait() {
		g.admissions.refused.Add(1)
		return g.admissions.refusal(g.name, limiter.Held, 0, held)
	}
	return g.waitAndAcquire(ctx, nothing, permit)
}

// waitAndAcquire waits for the tokens and the slot, and then acquires the permit.
func (g *Gate) waitAndAcquire(ctx context.Context, has acquired, permit *breaker.Permit) error {
	s, err := g.wait(ctx, has, permit)
	if err != nil {
		return err
	}
	return g.acquirePermit(ctx, g.now(), s, permit, &g.admissions.waited)
}

// These errors are the causes that end a wait early.
var (
	errOpened    = errors.New("weir: the breaker has opened")
	errForgotten = errors.New("weir: the key was forgotten")
)

// wait waits for the tokens and the slot of a call. If the breaker opens meanwhile, the call is
// refused.
func (g *Gate) wait(ctx context.Context, has acquired, permit *breaker.Permit) (slot, error) {
	began := g.admissions.beginWait()
	w := wait{permit: permit, last: g.now().Add(g.maxWait()), has: has}
	err, cause := g.waitWhileClosed(ctx, &w)
	for errors.Is(cause, errForgotten) { // the key has a new breaker, a new bucket and new slots
		err, cause = g.waitWhileClosed(ctx, &w)
	}
	g.admissions.endWait(began, err == nil)
	switch {
	case err == nil:
		return w.slot, nil
	case errors.Is(err, ErrRefused):
		g.admissions.refused.Add(1)
		return w.slot, g.withReason(err)
	case errors.Is(cause, errOpened):
		return w.slot, g.refusalOfBreaker()
	}
	return w.slot, g.undecided(ctx, err)
}

// wait is the wait of a call.
type wait struct {
	permit *breaker.Permit
	last   time.Time // when it ends
	has    acquired
	slot   slot // at the end of a successful wait
}

// waitWhileClosed is waitForTokens that also ends if the breaker opens or the key of the gate is
// forgotten. In these cases cause is errOpened or errForgotten.
func (g *Gate) waitWhileClosed(ctx context.Context, w *wait) (err, cause error) {
	waiting, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer hooks.AfterOpen(g.breaker, func(opened bool) {
		if opened {
			cancel(errOpened)
		} else {
			cancel(errForgotten)
		}
	})()
	err = g.waitForTokens(waiting, w)
	if err != nil && !errors.Is(err, ErrRefused) && ctx.Err() == nil {
		cause = context.Cause(waiting)
	}
	return err, cause
}

// refusalOfBreaker returns the error for a call that waited when the breaker opened. The breaker
// may have closed since.
func (g *Gate) refusalOfBreaker() error {
	if err := hooks.CheckAt(g.breaker, g.now()); err != nil {
		return err
	}
	return hooks.Refuse(g.breaker, errOpened.Error())
}

// waitForTokens waits until the call has its tokens and its slot, and the gate is not held. It checks
// for a hold after each wait, because a hold may begin meanwhile and not every limit can be held. If it
// returns an error, the call has nothing.
func (g *Gate) waitForTokens(ctx context.Context, w *wait) error {
	for {
		held, err := g.waitOnce(ctx, w)
		if err != nil || held.IsZero() {
			return err
		}
		if err := g.sleepUntil(ctx, held, w.last); err != nil {
			return err
		}
	}
}

// waitOnce waits for what the call does not have. If it returns an error or the end of a hold, the call
// has nothing.
func (g *Gate) waitOnce(ctx context.Context, w *wait) (held time.Time, err error) {
	has := w.has
	w.has = nothing // of the next turn
	if has < token {
		if err := g.waitForLimiter(ctx, w.last); err != nil {
			return held, err
		}
	}
	if has < tokens {
		if held = g.heldUntil(g.now()); !held.IsZero() {
			g.refundLocal()
			return held, nil
		}
		if err := g.waitForRemote(ctx, w.last); err != nil {
			g.refundLocal()
			return held, err
		}
	}
	if held = g.heldUntil(g.now()); held.IsZero() {
		if w.slot, err = g.waitForSlot(ctx, w.last, w.permit); err == nil {
			held = g.heldUntil(g.now())
		}
	}
	if err != nil || !held.IsZero() {
		w.slot.release()
		g.Refund(ctx)
	}
	return held, err
}

// waitForLimiter waits for a token of the limiter, at most until last.
func (g *Gate) waitForLimiter(ctx context.Context, last time.Time) error {
	if l, ok := g.limiter.(limiter.WaitLimiter); ok {
		return l.WaitAtMost(ctx, 1, last.Sub(g.now()))
	}
	return nil
}

// waitForRemote waits for a token of the remote, at most until last.
func (g *Gate) waitForRemote(ctx context.Context, last time.Time) error {
	l, ok := g.remote.(limiter.WaitLimiter)
	if !ok {
		return nil
	}
	err := l.WaitAtMost(ctx, 1, max(last.Sub(g.now()), 0))
	if _, refused := errors.AsType[*limiter.LimitedError](err); refused {
		return err
	}
	return g.notRefused(err)
}

// sleepUntil sleeps until a hold has ended. It refuses the call at once if that is after last or
// after the deadline of ctx.
func (g *Gate) sleepUntil(ctx context.Context, held, last time.Time) error {
	if deadline, ok := ctx.Deadline(); ok && deadline.Before(held) {
		return &limiter.LimitedError{Name: g.name, Reason: limiter.PastDue, Until: held}
	}
	if held.After(last) {
		return &limiter.LimitedError{Name: g.name, Reason: limiter.Held, Until: held}
	}
	return sleep(ctx, held.Sub(g.now()))
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

// withReason adds the gate's name to an error of a limiter that has none. If a hold was the reason
// that no token was available in time, the Reason becomes limiter.Held.
func (g *Gate) withReason(err error) error {
	if full, ok := errors.AsType[*inflight.FullError](err); ok && full.Name == "" {
		e := *full
		e.Name = g.name
		return &e
	}
	limited, ok := errors.AsType[*limiter.LimitedError](err)
	if !ok {
		return err
	}
	e := *limited
	if e.Name == "" {
		e.Name = g.name
	}
	tooLong := (e.Reason == limiter.NoTokens || e.Reason == limiter.WaitTooLong) && !e.Until.IsZero()
	if held := g.heldUntil(g.now()); tooLong && !held.IsZero() {
		e = limiter.LimitedError{Name: g.name, Reason: limiter.Held, Until: e.Until}
		if held.After(e.Until) {
			e.Until = held
		}
	}
	return &e
}

// heldUntil returns when the hold ends, or the zero time if the gate is not held.
func (g *Gate) heldUntil(now time.Time) (t time.Time) {
	if g.lastHold.Load() == 0 {
		return t
	}
	if end, held := g.hold.end(int64(now.Sub(g.epoch))); held {
		t = g.epoch.Add(time.Duration(end))
	}
	return t
}

func (g *Gate) maxWait() time.Duration { return time.Duration(g.admissions.maxWait.Load()) }
