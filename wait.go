package weir

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/weir-go/weir/inflight"
	"github.com/weir-go/weir/internal/bridge"
	"github.com/weir-go/weir/internal/remote"
	"github.com/weir-go/weir/limiter"
)

// waitOrRefuse continues a call that the limiter has refused, or the remote, if has is not nil. has
// is what the call has taken before it asked the remote.
func (g *setup) waitOrRefuse(ctx context.Context, now time.Time, r limiter.Result, has *tokens, to target) error {
	if g.longestWait > 0 {
		if has == nil {
			return g.waitAndAcquire(ctx, &wait{}, to)
		}
		return g.waitAndAcquire(ctx, &wait{tokens: *has, hasToken: true}, to)
	}
	if has != nil {
		g.giveBack(ctx, has)
	}
	e := limiter.LimitedError{Name: g.name, Reason: limiter.NoTokens, Limit: r.Limit}
	if r.NoRoom {
		g.nameMaxKeys(&e, has != nil)
	}
	g.countRefused()
	if r.RetryAfter == limiter.Never {
		return g.refusal(e, nil)
	}
	e.Until = now.Add(r.RetryAfter)
	if has != nil {
		return g.refusal(e, nil)
	}
	return g.refusal(e, g.retryPlaces())
}

// nameMaxKeys makes an error say that there is no room for the key in the remote or the limiter.
func (g *setup) nameMaxKeys(e *limiter.LimitedError, remote bool) {
	switch {
	case g.keyed != nil && !remote:
		e.MaxKeys = g.keyed.maxKeys() // all keys without room share a bucket
	case remote:
		e.Reason = limiter.NoRoom
		if r, ok := g.remote.(interface{ MaxKeys() int }); ok {
			e.MaxKeys = r.MaxKeys()
		}
	default:
		e.Reason, e.MaxKeys = limiter.NoRoom, bridge.Describe(g.limiter).MaxKeys
	}
}

// waitOutHold continues a call that arrives during a hold. It waits for the end of the hold and for
// the tokens. It refuses the call at once if the hold is longer than MaxWait.
func (g *setup) waitOutHold(ctx context.Context, now, held time.Time, to target) error {
	if held.Sub(now) > g.longestWait {
		g.countRefused()
		return g.refusal(limiter.LimitedError{Name: g.name, Reason: limiter.Held, Until: held}, nil)
	}
	return g.waitAndAcquire(ctx, &wait{}, to)
}

// waitAndAcquire waits for the tokens and the slot, and then acquires the permit.
func (g *setup) waitAndAcquire(ctx context.Context, w *wait, to target) error {
	if err := g.wait(ctx, w); err != nil {
		return err
	}
	return w.setup.acquirePermit(ctx, g.now(), w.tokens, w.slot, to, &g.admissions.waited)
}

// These errors are the causes that end a wait early.
var (
	errOpened    = errors.New("weir: the breaker has opened")
	errForgotten = errors.New("weir: the key was forgotten")
	errChanged   = errors.New("weir: the config has changed")
)

// wait waits for the tokens and the slot of a call. If the breaker opens meanwhile, the call is
// refused.
func (g *setup) wait(ctx context.Context, w *wait) error {
	began := g.admissions.beginWait()
	now := g.now()
	terms := &waitTerms{began: now, end: now.Add(g.longestWait)}
	err, cause := g.waitWhileClosed(ctx, w, terms)
	// A forgotten key has a new breaker, a new bucket and new slots.
	for errors.Is(cause, errForgotten) || errors.Is(cause, errChanged) {
		err, cause = g.Gate.setup.Load().currentSetup().waitWhileClosed(ctx, w, terms)
	}
	g.admissions.endWait(began, err == nil)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ErrRefused):
		g.countRefused()
		return g.withReason(err, terms.end.Sub(terms.began))
	case errors.Is(cause, errOpened):
		return g.refusalOfBreaker()
	}
	return g.undecided(ctx, err)
}

// waitWhileClosed is like waitForAll, but also ends if the breaker opens, the key of the gate is
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
	err = g.waitForAll(waiting, w)
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

// waitForAll waits until the call has its tokens and its slot, and the gate is not held. If it
// returns an error, the call has nothing.
//
// A call takes the limiter's token last, or takes it again after a wait for something else. If
// calls kept tokens while they wait for slots, all of them could begin at the moment at which the
// slots fall free, whatever the limit. A call with a slot that finds no token releases the slot,
// which another gate may need.
func (g *setup) waitForAll(ctx context.Context, w *wait) (err error) {
	for done := false; !done && err == nil; {
		held := g.heldUntil(g.now())
		switch {
		case !held.IsZero():
			g.giveBackWaiting(ctx, w)
			err = g.sleepUntil(ctx, held, w.last)
		case w.lacksSlot:
			done, err = g.waitForSlotFirst(ctx, w)
		case !w.hasToken:
			err = g.waitForLimiter(ctx, w)
		case g.remote != nil && !w.tokens.remote.Granted():
			err = g.waitForRemote(ctx, w)
		default:
			w.slot, done = g.takeSlot(slotHooks.OccupyUncounted)
			w.lacksSlot = !done
		}
	}
	if err != nil {
		g.giveBackWaiting(ctx, w)
	}
	return err
}

// giveBackWaiting gives back what a call has that waits.
func (g *setup) giveBackWaiting(ctx context.Context, w *wait) {
	g.giveBack(ctx, &w.tokens)
	w.hasToken, w.lacksSlot = false, false
}

// waitForSlotFirst waits for a slot and then takes the limiter's token. It reports whether the call
// has both and the gate is not held.
func (g *setup) waitForSlotFirst(ctx context.Context, w *wait) (done bool, err error) {
	w.tokens.local.Refund(1)
	w.hasToken, w.lacksSlot = false, false
	if w.slot, err = g.waitForSlot(ctx, w.last); err != nil {
		return false, err
	}
	if g.heldUntil(g.now()).IsZero() && g.takeTokenNow(w) {
		return true, nil
	}
	w.slot.release()
	w.slot = slot{}
	return false, nil
}

// takeTokenNow takes the limiter's token for a call that has waited for something else.
func (g *setup) takeTokenNow(w *wait) bool {
	w.tokens.local = limiter.Reservation{Result: limiter.Result{OK: true}}
	if g.limiter != nil {
		w.tokens.local = renew(g.limiter, g.now(), 1)
	}
	w.hasToken = w.tokens.local.OK
	return w.hasToken
}

// waitForLimiter waits for a token of the limiter.
func (g *setup) waitForLimiter(ctx context.Context, w *wait) (err error) {
	if l, ok := g.limiter.(limiter.WaitLimiter); ok {
		w.tokens.local, err = waitReserve(ctx, l, 1, w.last.Sub(g.now()))
	}
	w.hasToken = err == nil
	return err
}

// waitForRemote waits for a token of the remote, and then renews the token of the limiter.
func (g *setup) waitForRemote(ctx context.Context, w *wait) error {
	began := g.now()
	granted, err := remote.Wait(ctx, g.remote, 1, max(w.last.Sub(began), 0))
	if _, refused := errors.AsType[*limiter.LimitedError](err); refused {
		return err
	}
	if err != nil {
		return g.notRefused(err)
	}
	w.tokens.remote = granted
	if g.now().After(began) {
		w.tokens.local.Refund(1)
		g.takeTokenNow(w)
	}
	return nil
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

// withReason adds the gate's name to an error of a limiter if the error has no name, and MaxWait if
// the call could not wait for longer. If a hold was the reason that no token was available in time,
// the Reason becomes limiter.Held.
func (g *Gate) withReason(err error, maxWait time.Duration) error {
	if full, ok := errors.AsType[*inflight.FullError](err); ok {
		e := *full
		e.Name = g.nameOfBound(e.Name)
		slotHooks.NameMaxWait(&e, maxWait)
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
	if tooLong || e.Reason == limiter.Held {
		bridge.NameMaxWait(&e, maxWait)
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

// wait is the wait of a call. It does not contain the permit, which would have to be on the heap.
type wait struct {
	last  time.Time // when it ends
	setup *setup    // with which the call waits

	// what the call has: before the wait, during the wait, and at the end of a successful wait
	tokens    tokens
	slot      slot
	hasToken  bool // of the limiter
	lacksSlot bool // no slot was there a moment ago
}

// waitTerms are the settings of a wait that Reconfigure may change. They are not fields of wait,
// because waits keeps pointers to them, and a wait need not be on the heap.
type waitTerms struct {
	began time.Time
	setup *setup // with which the call waits

	// Guarded by the lock of waits during the wait.
	end    time.Time // when the wait ends
	cancel context.CancelCauseFunc
	timer  *time.Timer // calls cancel at end; nil unless Reconfigure has shortened the wait
}

// waits are the calls that wait at a gate or at the gates of a group, so that Reconfigure reaches
// them.
type waits struct {
	mu  sync.Mutex
	all map[*waitTerms]struct{}
}

// add adds a wait. Reconfigure may already have replaced the setup of the wait, so add calls adopt.
func (all *waits) add(w *waitTerms, cancel context.CancelCauseFunc) (remove func()) {
	all.mu.Lock()
	defer all.mu.Unlock()
	if all.all == nil {
		all.all = map[*waitTerms]struct{}{}
	}
	all.all[w] = struct{}{}
	w.cancel = cancel
	w.adopt()
	return func() { all.remove(w) }
}

func (all *waits) remove(w *waitTerms) {
	all.mu.Lock()
	defer all.mu.Unlock()
	delete(all.all, w)
	if w.timer != nil {
		w.timer.Stop()
		w.timer = nil
	}
}

// adopt applies the present configs of the gates to all calls that wait.
func (all *waits) adopt() {
	all.mu.Lock()
	defer all.mu.Unlock()
	for w := range all.all {
		w.adopt()
	}
}

// adopt makes the call wait again if its gate has another limiter or another bound now. If MaxWait
// is shorter now, adopt makes the call stop waiting in time.
func (w *waitTerms) adopt() {
	s := w.setup.Gate.setup.Load().currentSetup() // a key without room has another gate
	if (s.limiter == nil) != (w.setup.limiter == nil) || s.inFlight != w.setup.inFlight {
		w.cancel(errChanged)
	}
	end := w.began.Add(s.longestWait)
	if !end.Before(w.end) {
		return
	}
	w.end = end
	if w.timer != nil {
		w.timer.Stop()
	}
	cancel := w.cancel
	w.timer = time.AfterFunc(end.Sub(s.now()), func() { cancel(errChanged) })
}
