package weir

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/internal/gatehook"
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
		return s.acquireInTime(ctx, permit)
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
		return s.acquireSlowly(ctx, g.now(), permit)
	}
	at := time.Since(g.epoch)
	// The permit of a closed breaker occupies nothing, so it may be acquired before the token.
	if s.bucket != nil && !held && hooks.AdmitAfter(g.breaker, at, gatehook.NoEscape(permit)) {
		if takeFast(s.bucket, at, 1) {
			if s.inFlight != nil {
				return s.acquireSlotFast(ctx, permit)
			}
			g.admissions.allowed.Add(1)
			return nil
		}
		*permit = breaker.Permit{}
	}
	return s.acquireSlowly(ctx, g.epoch.Add(at), permit)
}

// acquireSlowly does the work of acquire if none of its shortcuts applies. No shortcut applies to
// the breaker of a key that was evicted.
func (g *setup) acquireSlowly(ctx context.Context, now time.Time, permit *breaker.Permit) error {
	if latest := g.currentSetup(); latest.Gate != g.Gate {
		return latest.acquire(ctx, permit)
	}
	if err := hooks.CheckAt(g.breaker, now); err != nil {
		return err
	}
	if g.throttle == nil {
		return g.acquireTokens(ctx, now, permit)
	}
	if _, err := g.throttle.Allow(); err != nil {
		// its permit holds nothing; throttleListener records the outcome
		return err
	}
	// a call with a slot gets bothListeners instead
	hooks.Tell(gatehook.NoEscape(permit), throttleListener{g.throttle}, 0)
	return g.acquireTokens(ctx, now, permit)
}

// acquireTokens acquires the tokens, then the slot and then the permit. It waits if the gate allows
// that.
func (g *setup) acquireTokens(ctx context.Context, now time.Time, permit *breaker.Permit) error {
	if held := g.heldUntil(now); !held.IsZero() {
		return g.waitOutHold(ctx, now, held, permit)
	}
	if g.limiter != nil {
		if r := g.takeToken(now); !r.OK {
			return g.waitOrRefuse(ctx, now, r, nothing, permit)
		}
	}
	if g.remote != nil {
		return g.acquireFromRemote(ctx, permit)
	}
	if g.limiter == nil && g.inFlight == nil {
		return hooks.AdmitAt(g.breaker, now, gatehook.NoEscape(permit))
	}
	return g.acquireSlot(ctx, now, permit)
}

// acquireFromRemote acquires the remote's token, then the slot and then the permit, for a call that
// has its token of the limiter. The remote is called after the limiter because it is slower. A hold
// may begin during that time, so the function looks for one afterwards. It does not call the remote
// if all slots are taken and the call cannot wait.
func (g *setup) acquireFromRemote(ctx context.Context, permit *breaker.Permit) error {
	if g.inFlight != nil && g.longestWait <= 0 && slotHooks.IsFull(g.inFlight) {
		g.refundLocal()
		return g.refuseSlot()
	}
	r, err := g.remote.Take(ctx, 1)
	now := g.now()
	switch {
	case err != nil:
		g.refundLocal()
		return g.undecided(ctx, g.notRefused(err))
	case !r.OK:
		return g.waitOrRefuse(ctx, now, r, token, permit)
	}
	if held := g.heldUntil(now); !held.IsZero() {
		g.refund(ctx)
		return g.waitOutHold(ctx, now, held, permit)
	}
	return g.acquireSlot(ctx, now, permit)
}

// acquirePermit acquires the permit of a call that has its tokens and its slot, and counts the
// call. The breaker may have opened since it was checked, and the deadline may be too near by now.
func (g *setup) acquirePermit(ctx context.Context, now time.Time, s slot, permit *breaker.Permit, count *atomic.Int64) error {
	err := g.recheckHopeless(ctx, now)
	if err == nil {
		err = hooks.AdmitAt(g.breaker, now, gatehook.NoEscape(permit))
	}
	if err != nil {
		s.release()
		g.refund(ctx)
		return err
	}
	count.Add(1)
	return nil
}

// takeToken takes a token of the limiter. If the call can wait when it is refused, the limiter
// counts only the wait, not the refusal.
func (g *setup) takeToken(now time.Time) limiter.Result {
	if g.longestWait > 0 {
		if r, ok := takeBeforeWait(g.limiter, 1); ok {
			return r
		}
	}
	return g.takeAt(now, 1)
}

// takeAt takes n tokens from the limiter at the given time, or now if the limiter has no TakeAt.
func (g *setup) takeAt(now time.Time, n int) limiter.Result {
	if g.timed != nil {
		return g.timed.TakeAt(now, n)
	}
	return g.limiter.Take(n)
}

// refundLocal gives the token back to the limiter.
func (g *setup) refundLocal() {
	if g.limiter != nil {
		g.limiter.Refund(1)
	}
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
