package weir

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/internal/gatehook"
	"github.com/weir-go/weir/internal/remote"
	"github.com/weir-go/weir/limiter"
)

// acquire acquires the tokens and the permit of a call.
//
// The first cases are shortcuts: for gates without a rate limit, and for gates with their own
// bucket while the breaker is closed. No shortcut reads the clock more often than needed.
func (g *Gate) acquire(ctx context.Context, permit *breaker.Permit) error {
	err := ctx.Err()
	if err != nil {
		return err
	}
	s := g.setup.Load()
	if s.chances != nil {
		return s.acquireInTime(ctx, target{permit: permit})
	}
	held := g.lastHold.Load() != 0
	if s.onlyBreaker && !held {
		if s.inFlight == nil && s.keyed == nil {
			return hooks.Admit(g.breaker, gatehook.NoEscape(permit))
		}
		if hooks.AdmitClosed(g.breaker, gatehook.NoEscape(permit), s.ownSlots) {
			if s.inFlight == nil || s.ownWord != nil && gatehook.TryOccupy(s.ownWord, s.ownLimit) || s.takeSlotFast(permit) {
				return nil
			}
			*permit = breaker.Permit{}
		}
		return s.acquireSlowly(ctx, g.now(), target{permit: permit})
	}
	at := time.Since(g.epoch)
	// The permit of a closed breaker occupies nothing, so it may be acquired before the token.
	if s.bucket != nil && !held && hooks.AdmitAfter(g.breaker, at, gatehook.NoEscape(permit)) {
		if takeFast(s.bucket, at, 1) {
			if s.inFlight != nil {
				return s.acquireSlotFast(ctx, at, permit)
			}
			g.admissions.allowed.Add(1)
			return nil
		}
		*permit = breaker.Permit{}
	}
	return s.acquireSlowly(ctx, g.epoch.Add(at), target{permit: permit})
}

// acquireTo is acquire without the shortcuts. It also stores the tokens, if they are wanted.
func (g *Gate) acquireTo(ctx context.Context, to target) error {
	if to.tokens == nil {
		return g.acquire(ctx, to.permit)
	}
	s := g.setup.Load()
	if s.chances != nil {
		return s.acquireInTime(ctx, to)
	}
	return s.acquireSlowly(ctx, g.now(), to)
}

// acquireSlowly does the work of acquire if none of its shortcuts applies. No shortcut applies to
// the breaker of a key that was evicted.
func (g *setup) acquireSlowly(ctx context.Context, now time.Time, to target) error {
	if latest := g.currentSetup(); latest.Gate != g.Gate {
		return latest.acquireTo(ctx, to)
	}
	if err := hooks.CheckAt(g.breaker, now); err != nil {
		return err
	}
	if g.throttle == nil {
		return g.acquireTokens(ctx, now, to)
	}
	if _, err := g.throttle.Allow(); err != nil {
		// its permit holds nothing; throttleListener records the outcome
		return err
	}
	// a call with a slot gets bothListeners instead
	hooks.Tell(gatehook.NoEscape(to.permit), throttleListener{g.throttle}, 0)
	return g.acquireTokens(ctx, now, to)
}

// acquireTokens acquires the tokens, then the slot and then the permit. It waits if the gate allows
// that.
func (g *setup) acquireTokens(ctx context.Context, now time.Time, to target) error {
	if held := g.heldUntil(now); !held.IsZero() {
		return g.waitOutHold(ctx, now, held, to)
	}
	var t tokens
	switch {
	case g.bucket != nil: // faster than reserve, since its refusals need no Reservation
		if r := g.bucket.Take(1); !r.OK {
			return g.waitOrRefuse(ctx, now, r, nil, to)
		}
		t.local = takenFast(g.bucket, now.Sub(g.epoch), 1)
	case g.limiter != nil:
		if t.local = reserve(g.limiter, now, 1, g.longestWait > 0); !t.local.OK {
			return g.waitOrRefuse(ctx, now, t.local.Result, nil, to)
		}
	}
	if g.remote != nil {
		return g.acquireFromRemote(ctx, t, to)
	}
	if g.limiter == nil && g.inFlight == nil {
		return hooks.AdmitAt(g.breaker, now, gatehook.NoEscape(to.permit))
	}
	return g.acquireSlot(ctx, now, t, to)
}

// target is where the results of acquire are stored.
type target struct {
	permit *breaker.Permit
	tokens *tokens // nil if the tokens are not given back after the call was allowed
}

// tokens are what a call has taken from the limiter and the remote. The zero value is nothing.
type tokens struct {
	local  limiter.Reservation
	remote remote.Tokens
}

// giveBack gives the tokens back, because the call is not made.
func (g *setup) giveBack(ctx context.Context, t *tokens) {
	t.local.Refund(1)
	t.remote.Refund(ctx)
	*t = tokens{}
}

// acquireFromRemote acquires the remote's token, then the slot and then the permit, for a call that
// has its token of the limiter. The remote is called after the limiter because it is slower. A hold
// may begin during that time, so the function looks for one afterwards. It does not call the remote
// if all slots are taken and the call cannot wait.
func (g *setup) acquireFromRemote(ctx context.Context, t tokens, to target) error {
	if g.inFlight != nil && g.longestWait <= 0 && slotHooks.IsFull(g.inFlight) {
		g.giveBack(ctx, &t)
		return g.refuseSlot()
	}
	r, granted, err := remote.Take(ctx, g.remote, 1)
	now := g.now()
	switch {
	case err != nil:
		g.giveBack(ctx, &t)
		return g.undecided(ctx, g.notRefused(err))
	case !r.OK:
		return g.waitOrRefuse(ctx, now, r, &t, to)
	case r.RetryAfter <= 0: // otherwise shadow mode has allowed the call and taken nothing
		t.remote = granted
	}
	if held := g.heldUntil(now); !held.IsZero() {
		g.giveBack(ctx, &t)
		return g.waitOutHold(ctx, now, held, to)
	}
	return g.acquireSlot(ctx, now, t, to)
}

// acquirePermit acquires the permit of a call that has its tokens and its slot, and counts the
// call. The breaker may have opened since it was checked, and the deadline may be too near by now.
func (g *setup) acquirePermit(ctx context.Context, now time.Time, t tokens, s slot, to target, count *atomic.Int64) error {
	err := g.recheckHopeless(ctx, now)
	if err == nil {
		err = hooks.AdmitAt(g.breaker, now, gatehook.NoEscape(to.permit))
	}
	if err != nil {
		s.release()
		g.giveBack(ctx, &t)
		return err
	}
	s.hold(to.permit)
	if to.tokens != nil {
		*to.tokens = t
	}
	count.Add(1)
	return nil
}

// takeAt takes n tokens from the limiter at the given time, or now if the limiter has no TakeAt.
func (g *setup) takeAt(now time.Time, n int) limiter.Result {
	if g.timed != nil {
		return g.timed.TakeAt(now, n)
	}
	return g.limiter.Take(n)
}

// undecided returns the error of a remote that came to no decision. The call was neither made nor
// refused. The call is counted, as cancelled, only if the caller gave up.
func (g *Gate) undecided(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		g.admissions.cancelled.Add(1)
	}
	return err
}

// notRefused returns an error of a remote in a form that does not match ErrRefused. The error may
// be a refusal of the remote itself, such as that of a breaker in front of its store, but the call
// to the service was not refused.
func (g *Gate) notRefused(err error) error {
	if errors.Is(err, ErrRefused) {
		return fmt.Errorf("weir: the remote limit of gate %q came to no decision: %v", g.name, err) //nolint:errorlint // must not match
	}
	return err
}

// now returns the time. It takes little more than half the time of time.Now.
func (g *Gate) now() time.Time { return g.epoch.Add(time.Since(g.epoch)) }
