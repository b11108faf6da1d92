package weir

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weir-go/weir/internal/instrument"
	"github.com/weir-go/weir/internal/remote"
	"github.com/weir-go/weir/limiter"
)

// acquire acquires what a call needs. The first cases are shortcuts: for gates without a rate
// limit, and for gates with their own bucket while the breaker is closed. All other calls pass the
// stages. No shortcut reads the clock more often than needed.
func (g *Gate) acquire(ctx context.Context, permit *Permit) error {
	err := ctx.Err()
	if err != nil {
		return err
	}
	s := g.setup.Load()
	if s.chances != nil || s.retries != nil {
		return s.acquireInOrder(&attempt{ctx: ctx, now: g.now()}, permit)
	}
	held := g.lastHold.Load().Load() != 0 || g.told.Load() != nil
	if s.onlyBreaker && !held {
		if s.inFlight == nil && s.keyed == nil {
			return inBreaker.Admit(g.breaker, &permit.breaker)
		}
		if inBreaker.AdmitClosed(g.breaker, &permit.breaker) {
			if s.inFlight == nil || s.takeOwnSlot(permit) || s.takeSlotFast(permit) {
				return nil
			}
			inBreaker.Drop(&permit.breaker)
		}
		return s.acquireInOrder(&attempt{ctx: ctx, now: g.now()}, permit)
	}
	at := time.Since(g.epoch)
	// The permit of a closed breaker can be dropped, so it may be acquired before the token.
	if s.bucket != nil && !held && inBreaker.AdmitClosedAt(g.breaker, at, &permit.breaker) {
		if inLimiter.TakeFast(s.bucket, at, 1) {
			if s.inFlight != nil {
				return s.acquireSlotFast(ctx, at, permit)
			}
			g.admissions().allowed.Add(1)
			return nil
		}
		inBreaker.Drop(&permit.breaker)
	}
	return s.acquireInOrder(&attempt{ctx: ctx, now: g.epoch.Add(at)}, permit)
}

// acquireSlotFast acquires the slot of a call that has its token and the permit of a closed
// breaker.
func (g *setup) acquireSlotFast(ctx context.Context, at time.Duration, permit *Permit) error {
	if g.takeOwnSlot(permit) || g.takeSlotFast(permit) {
		return nil
	}
	inBreaker.Drop(&permit.breaker)
	a := attempt{ctx: ctx, now: g.epoch.Add(at), hasToken: true}
	a.tokens.local = inLimiter.Taken(g.bucket, at, 1)
	return g.acquireInOrder(&a, permit)
}

// attempt is a call that acquires what it needs before it gets its permit. It does not contain the
// permit, which would have to be on the heap.
type attempt struct {
	ctx   context.Context
	now   time.Time // read before the first stage, and again after each stage that takes time
	setup *setup    // whose stages the call has passed; nil before that

	cost *Cost // what the caller has said that the call costs; looked up at a limit of costs

	// what the call has
	tokens    tokens
	slot      slot
	hasToken  bool // of the limiter
	hasRemote bool // the remote has allowed the call; it has a token unless it is in shadow mode
	hasSlot   bool // or needs none
	checked   bool // the breaker has been looked at
	throttled bool // the throttle has allowed the call
	counted   bool // the limiter has counted the call, if it keeps statistics
	test      bool // the call is hopeless, and a test
	retry     bool // the call is a retry or a hedge; only set with a retry budget

	reported *reported      // its share of what the service says is left, if that is known
	tookTime bool           // the last stage has asked the remote
	held     time.Time      // when the hold ends that has refused the call
	refused  limiter.Result // the answer of the limiter or the remote that has refused

	waiter      waiter    // nil until the call waits
	began, last time.Time // when the wait began, and when it ends
}

// tokens are what a call has taken from the limiter and the remote. The zero value is nothing.
type tokens struct {
	local  limiter.Reservation
	remote remote.Tokens

	cost    *Cost   // has charged; nil if there is nothing to settle
	charged *tokens // what Settle corrects
}

// giveBack gives the tokens back, because the call is not made.
func (t *tokens) giveBack(ctx context.Context) {
	if t.cost != nil && t.cost.take(t.charged) {
		t.charged.giveBack(ctx)
	}
	t.local.Refund(allTokens)
	t.remote.Refund(ctx)
	*t = tokens{}
}

// stage is something that a call needs before it is made. A call passes the stages in this order:
// it tries each of them, and waits at one that refuses it if the gate has a MaxWait. After the last
// one it gets the permit of the breaker. What it has taken is given back in the opposite order.
type stage uint8

const (
	deadlineStage stage = iota // the call is not hopeless
	breakerStage               // the breaker would let the call pass; it acquires nothing
	retryStage                 // the budget would allow the retry; it takes nothing
	holdStage                  // the gate is not held
	throttleStage
	tokenStage  // of the limiter
	remoteStage // the token of the remote, which is asked after the limiter because it is slower
	slotStage
	allStages
)

// acquireInOrder acquires what a call needs, stage by stage, and waits if the gate allows that.
func (g *setup) acquireInOrder(a *attempt, p *Permit) error {
	if g.keyed != nil {
		if latest := g.currentSetup(); latest.Gate != g.Gate { // the key has another gate now
			return latest.acquireInOrder(a, p)
		}
	}
	admitted := false
	defer func() {
		if !admitted { // also if a limiter of another package has panicked
			g.giveBack(a, allStages)
		}
		if a.waiter != nil {
			inLimiter.EndCall(&g.admissions().calls, a.now.Sub(a.began), admitted)
		}
	}()
	at, err := g.pass(a)
	switch {
	case err != nil || at == allStages:
	case g.maxWait <= 0, at == holdStage && a.held.Sub(a.now) > g.maxWait:
		err = g.refuse(a, at)
	default:
		err = g.wait(a, at)
	}
	if err == nil {
		err = a.setup.admit(a, p)
	}
	admitted = err == nil
	return err
}

// pass tries the stages in their order. It returns allStages if the call has passed all of them.
// Otherwise it returns the stage that the call could not pass. err is nil if it is a limit or a
// hold, for which a call may wait.
//
// After a stage that takes time it begins again, because a hold may have begun meanwhile. A call
// passes a stage at once if it has what it needs there.
func (g *setup) pass(a *attempt) (at stage, err error) {
	for at < allStages {
		passed, err := g.try(a, at)
		switch {
		case err != nil || !passed:
			return at, err
		case a.tookTime:
			a.tookTime = false
			at = 0
		default:
			at++
		}
	}
	a.setup = g
	return at, nil
}

// try takes what a call needs at a stage, without a wait, and reports whether the call has passed
// the stage.
func (g *setup) try(a *attempt, at stage) (passed bool, err error) {
	switch at {
	case deadlineStage:
		if g.chances != nil {
			err = g.refuseHopeless(a)
		}
		return err == nil, err
	case breakerStage:
		if a.checked { // from now on Watch looks, and admit at the end
			return true, nil
		}
		a.checked = true
		err = inBreaker.CheckAt(g.breaker, a.now)
		return err == nil, err
	case retryStage:
		if g.retries == nil {
			return true, nil
		}
		if a.retry = Attempt(a.ctx) > 0; a.retry {
			err = g.retries.check()
		}
		return err == nil, err
	case holdStage:
		if a.held = g.heldUntil(a.now); a.held.IsZero() && a.reported == nil {
			g.takeTold(a)
		}
		return a.held.IsZero(), nil
	case throttleStage:
		if g.throttle != nil && !a.throttled {
			// its permit holds nothing; Permit.release records the outcome
			_, err = g.throttle.Allow()
			a.throttled = err == nil
		}
		return err == nil, err
	case tokenStage:
		return g.limiter == nil || a.hasToken || g.tryToken(a), nil
	case remoteStage:
		if g.remote == nil || a.hasRemote {
			return true, nil
		}
		if a.waiter != nil && a.now.Before(a.last) { // it is asked by waitAt, until then
			return false, nil
		}
		return g.tryRemote(a)
	case slotStage:
		if g.inFlight != nil && !a.hasSlot {
			a.slot, a.hasSlot = g.takeSlot(occupyUncounted)
		}
		return g.inFlight == nil || a.hasSlot, nil
	default:
		return true, nil
	}
}

// takeTold takes what the call needs of what the service has said is left, or sets until when the
// call is held.
func (g *setup) takeTold(a *attempt) {
	t := g.told.Load()
	if t == nil {
		return
	}
	call, until, refused := t.take(a.now.Sub(g.epoch), [resources]int64{callsLeft: 1, costLeft: int64(a.costs())})
	switch {
	case call != nil:
		a.reported = call
	case refused:
		a.held = g.epoch.Add(until)
	default:
		g.told.CompareAndSwap(t, nil)
	}
}

// tryToken takes the token of the limiter.
func (g *setup) tryToken(a *attempt) bool {
	if g.bucket != nil { // faster than reserve, since its refusals need no Reservation
		if a.refused = g.bucket.Take(1); a.refused.OK {
			a.tokens.local = inLimiter.Taken(g.bucket, a.now.Sub(g.epoch), 1)
		}
		a.hasToken = a.refused.OK
		return a.hasToken
	}
	var r limiter.Reservation
	if a.counted { // the call had a token before
		r = inLimiter.Renew(g.limiter, a.now, g.tokens(a))
	} else {
		r = inLimiter.Reserve(g.limiter, a.now, g.tokens(a), g.maxWait > 0)
	}
	if a.refused = r.Result; r.OK {
		a.tokens.local, a.counted = r, true
	}
	a.hasToken = r.OK
	return a.hasToken
}

// tokens returns the number of tokens of the limiter that the call needs.
func (g *setup) tokens(a *attempt) int {
	if !g.costs {
		return 1
	}
	return a.costs()
}

// remoteTokens returns the number of tokens of the remote that the call needs.
func (g *setup) remoteTokens(a *attempt) int {
	if !g.remoteCosts {
		return 1
	}
	return a.costs()
}

// costs returns how many tokens the call costs.
func (a *attempt) costs() int {
	if a.cost == nil {
		a.cost = costOf(a.ctx)
	}
	return a.cost.tokens()
}

// tryRemote takes the token of the remote. It does not ask the remote if all slots are taken and
// the call cannot wait.
func (g *setup) tryRemote(a *attempt) (passed bool, err error) {
	if g.inFlight != nil && g.maxWait <= 0 && inBound.IsFull(g.inFlight) {
		g.countRefused()
		return false, g.refuseSlot(a.ctx)
	}
	r, granted, err := remote.Take(a.ctx, g.remote, g.remoteTokens(a))
	a.now = g.now()
	switch {
	case err != nil:
		return false, g.undecided(a.ctx, g.notRefused(err))
	case !r.OK:
		a.refused = r
		return false, nil
	case r.RetryAfter <= 0: // otherwise shadow mode has allowed the call and taken nothing
		a.tokens.remote = granted
	}
	a.hasRemote, a.tookTime = true, true
	return true, nil
}

// admit acquires the permit of the breaker, which may have opened since it was checked, and gives
// the permit what the call has acquired.
func (g *setup) admit(a *attempt, p *Permit) error {
	if err := g.admitRetry(a, p); err != nil {
		return err
	}
	p.slot, p.reported = a.slot, a.reported
	if g.throttle != nil || g.chances != nil || a.slot.gate != nil || a.reported != nil {
		p.of = g
	}
	if g.chances != nil {
		p.began, p.test = a.now.Sub(g.epoch), a.test
	}
	if (g.costs || g.remoteCosts) && a.cost != nil {
		a.cost.charge(g, &a.tokens)
	}
	switch {
	case a.waiter != nil: // acquireInOrder counts it
	case g.limiter != nil || g.remote != nil || g.inFlight != nil:
		g.admissions().allowed.Add(1)
	}
	return nil
}

// admitRetry acquires the permit of the breaker, and the token of a retry.
func (g *setup) admitRetry(a *attempt, p *Permit) error {
	retry := g.retries != nil && a.retry
	if retry {
		if err := g.retries.take(); err != nil {
			return err
		}
	}
	err := inBreaker.AdmitAt(g.breaker, a.now, &p.breaker)
	switch {
	case err == nil && g.retries != nil:
		g.retries.admitted(retry)
	case err != nil && retry:
		g.retries.giveBack()
	}
	return err
}

// giveBack gives back what a call has, except from the stage kept.
func (g *setup) giveBack(a *attempt, kept stage) {
	for at := allStages - 1; at > 0; at-- {
		switch {
		case at == kept:
		case at == slotStage && a.hasSlot:
			a.slot.release()
			a.slot, a.hasSlot = slot{}, false
		case at == remoteStage && a.hasRemote:
			a.tokens.remote.Refund(a.ctx)
			a.hasRemote = false
		case at == holdStage && a.reported != nil:
			a.reported.giveBack()
			a.reported = nil
		case at == tokenStage && a.hasToken:
			a.tokens.local.Refund(allTokens)
			a.tokens.local, a.hasToken = limiter.Reservation{}, false
		}
	}
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
		inLimiter.Count(&g.admissions().calls, instrument.Cancelled)
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
