package weir

import (
	"context"
	"errors"
	"time"

	"github.com/weir-go/weir/limiter"
)

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
	return g.breaker.Refuse(errOpened.Error())
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
