package weir

import (
	"context"
	"errors"
	"time"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/inflight"
	"github.com/weir-go/weir/limiter"
)

// heldBeforeWait says what a call holds before it waits.
type heldBeforeWait uint8

const (
	nothing heldBeforeWait = iota
	token                  // of the limiter
	tokens                 // of the limiter and of the remote
)

// waitOrRefuse continues a call that the limiter or the remote has refused.
func (g *setup) waitOrRefuse(ctx context.Context, now time.Time, r limiter.Result, has heldBeforeWait, permit *breaker.Permit) error {
	if g.longestWait > 0 {
		return g.waitAndAcquire(ctx, has, permit)
	}
	if has == token {
		g.refundLocal()
	}
	e := limiter.LimitedError{Name: g.name, Reason: limiter.NoTokens, Limit: r.Limit}
	g.countRefused()
	if r.RetryAfter == limiter.Never {
		return g.admissions.refusal(e, nil)
	}
	e.Until = now.Add(r.RetryAfter)
	if has == nothing {
		return g.admissions.refusal(e, g.retryPlaces())
	}
	return g.admissions.refusal(e, nil)
}

// waitOutHold continues a call that arrives during a hold. It waits for the end of the hold and for
// the tokens. It refuses the call at once if the hold is longer than MaxWait.
func (g *setup) waitOutHold(ctx context.Context, now, held time.Time, permit *breaker.Permit) error {
	if held.Sub(now) > g.longestWait {
		g.countRefused()
		return g.admissions.refusal(limiter.LimitedError{Name: g.name, Reason: limiter.Held, Until: held}, nil)
	}
	return g.waitAndAcquire(ctx, nothing, permit)
}

// waitAndAcquire waits for the tokens and the slot, and then acquires the permit.
func (g *setup) waitAndAcquire(ctx context.Context, has heldBeforeWait, permit *breaker.Permit) error {
	w, err := g.wait(ctx, has, permit)
	if err != nil {
		return err
	}
	return w.setup.acquirePermit(ctx, g.now(), w.slot, permit, &g.admissions.waited)
}

// These errors are the causes that end a wait early.
var (
	errOpened    = errors.New("weir: the breaker has opened")
	errForgotten = errors.New("weir: the key was forgotten")
	errChanged   = errors.New("weir: the config has changed")
)

// wait waits for the tokens and the slot of a call. If the breaker opens meanwhile, the call is
// refused.
func (g *setup) wait(ctx context.Context, has heldBeforeWait, permit *breaker.Permit) (w wait, err error) {
	began := g.admissions.beginWait()
	now := g.now()
	w = wait{permit: permit, has: has}
	terms := &waitTerms{began: now, end: now.Add(g.longestWait)}
	err, cause := g.waitWhileClosed(ctx, &w, terms)
	// A forgotten key has a new breaker, a new bucket and new slots.
	for errors.Is(cause, errForgotten) || errors.Is(cause, errChanged) {
		err, cause = g.Gate.setup.Load().currentSetup().waitWhileClosed(ctx, &w, terms)
	}
	g.admissions.endWait(began, err == nil)
	switch {
	case err == nil:
		return w, nil
	case errors.Is(err, ErrRefused):
		g.countRefused()
		return w, g.withReason(err)
	case errors.Is(cause, errOpened):
		return w, g.refusalOfBreaker()
	}
	return w, g.undecided(ctx, err)
}

// waitWhileClosed is like waitForTokens, but also ends if the breaker opens, the key of the gate is
// forgotten or the gate is reconfigured. In these cases cause is errOpened, errForgotten or
// errChanged.
func (g *setup) waitWhileClosed(ctx context.Context, w *wait, terms *waitTerms) (err, cause error) {
	waiting, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	w.setup, w.last, terms.setup = g, terms.end, g
	if g.waits != nil {
		defer g.waits.add(terms, cancel)()
	}
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

// waitForTokens waits until the call has its tokens and its slot, and the gate is not held. It
// checks for a hold after each wait, because a hold may begin meanwhile and not every limit can be
// held. If it returns an error, the call has nothing.
func (g *setup) waitForTokens(ctx context.Context, w *wait) error {
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

// waitOnce waits for the tokens or the slot that the call lacks. If it returns an error or the end
// of a hold, the call has nothing.
func (g *setup) waitOnce(ctx context.Context, w *wait) (held time.Time, err error) {
	has := w.has
	w.has, w.slot = nothing, slot{} // what the call has in the next call of waitOnce
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
		g.refund(ctx)
	}
	return held, err
}

// waitForLimiter waits for a token of the limiter until last at the latest.
func (g *setup) waitForLimiter(ctx context.Context, last time.Time) error {
	if l, ok := g.limiter.(limiter.WaitLimiter); ok {
		return l.WaitAtMost(ctx, 1, last.Sub(g.now()))
	}
	return nil
}

// waitForRemote waits for a token of the remote until last at the latest.
func (g *setup) waitForRemote(ctx context.Context, last time.Time) error {
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

// sleepUntil sleeps until a hold has ended. It refuses the call at once if the hold ends after last
// or after the deadline of ctx.
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

// withReason adds the gate's name to an error of a limiter if the error has no name. If a hold was
// the reason that no token was available in time, the Reason becomes limiter.Held.
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
	if end, held := g.hold.endOf(int64(now.Sub(g.epoch))); held {
		t = g.epoch.Add(time.Duration(end))
	}
	return t
}
