package weir

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/weir-go/weir/inflight"
	"github.com/weir-go/weir/internal/places"
	"github.com/weir-go/weir/internal/remote"
	"github.com/weir-go/weir/internal/waiting"
	"github.com/weir-go/weir/limiter"
)

// refuse counts a call that a stage has refused and that does not wait, and returns its error.
func (g *setup) refuse(a *attempt, at stage) error {
	g.countRefused()
	switch at {
	case holdStage:
		return g.refusal(limiter.LimitedError{Name: g.name, Reason: limiter.Held, Until: a.held}, nil)
	case slotStage:
		return g.refuseSlot(a.ctx)
	default: // the limiter or the remote has refused
	}
	e := limiter.LimitedError{Name: g.name, Reason: limiter.NoTokens, Limit: a.refused.Limit}
	if a.refused.NoRoom {
		g.nameMaxKeys(&e, at)
	}
	if a.refused.RetryAfter == limiter.Never {
		return g.refusal(e, nil)
	}
	e.Until = a.now.Add(a.refused.RetryAfter)
	if at == remoteStage {
		return g.refusal(e, nil)
	}
	return g.refusal(e, g.retryPlaces(g.tokens(a)))
}

// nameMaxKeys makes an error say that there is no room for the key in the remote or the limiter.
func (g *setup) nameMaxKeys(e *limiter.LimitedError, at stage) {
	switch {
	case at == remoteStage:
		e.Reason = limiter.NoRoom
		if r, ok := g.remote.(interface{ MaxKeys() int }); ok {
			e.MaxKeys = r.MaxKeys()
		}
	case g.keyed != nil && g.ownBuckets:
		e.MaxKeys = g.keyed.noBucket() // all keys without a bucket share one
	default:
		e.Reason, e.MaxKeys = limiter.NoRoom, inLimiter.MaxKeys(g.limiter)
	}
}

// sameMoment bounds the difference between the Until times of two refusals that share an error.
const sameMoment = time.Microsecond

// sharedRefusal is an error that several refused calls share.
type sharedRefusal struct {
	err     limiter.LimitedError
	places  *places.Places
	maxWait time.Duration
}

// refusal returns the error of a call that is refused at once. Calls that are refused until the
// same moment share one error, so that refusals under load do not allocate. If p is not nil, p
// chooses the moment at which each refused caller should retry.
func (g *setup) refusal(e limiter.LimitedError, p *places.Places) error {
	a := g.admissions()
	last := a.lastRefusal.Load()
	if last != nil && last.err.Limit == e.Limit && last.err.Reason == e.Reason && last.places == p && last.maxWait == g.maxWait {
		if early := last.err.Until.Sub(e.Until); early >= 0 && early < sameMoment {
			return &last.err
		}
	}
	next := &sharedRefusal{err: e, places: p, maxWait: g.maxWait}
	inLimiter.Spread(&next.err, p)
	inLimiter.NameMaxWait(&next.err, g.maxWait)
	a.lastRefusal.Store(next)
	return &next.err
}

// retryPlaces counts a call that the gate's limiter has refused, and returns the moments at which
// the callers of such calls should retry, or nil if the rate of the limiter is not known. n is how
// many tokens the call takes.
func (g *setup) retryPlaces(n int) *places.Places {
	interval := inLimiter.Interval(g.limiter)
	if interval <= 0 {
		return nil
	}
	interval *= time.Duration(min(n, int(max(places.Horizon/interval, 1))))
	p := g.places.Load()
	if p == nil {
		g.places.CompareAndSwap(nil, places.New())
		p = g.places.Load()
	}
	p.Refuse(interval)
	return p
}

// waiter is a call that waits. It is interrupted when the breaker opens, the key of the gate is
// forgotten, or the config changes.
type waiter = waiting.Call

// openedText is the reason of the refusal of a call that waited when the breaker opened.
const openedText = "weir: the breaker has opened"

// wait waits at a stage that has refused a call, and at any other that refuses it later, until the
// call has passed all stages. If the breaker opens meanwhile, the call is refused.
func (g *setup) wait(a *attempt, at stage) error {
	a.waiter = inLimiter.NewCall(&g.admissions().calls)
	a.began, a.last = a.now, a.now.Add(g.maxWait)
	ended, err := g.waitAndPass(a, at)
	for ended && a.mustRestart(err) {
		a.waiter.Clear()
		a.now = time.Now()
		g = g.Gate.setup.Load().setupOfKey()
		ended, err = g.waitAndPass(a, allStages)
	}
	switch {
	case err == nil:
		return nil
	case !ended:
		return err
	case errors.Is(err, ErrRefused):
		g.countRefused()
		return g.withReason(err, a.last.Sub(a.began))
	case a.waiter.Cause() == waiting.Opened && a.ctx.Err() == nil:
		return g.refusalOfBreaker()
	case a.waiter.Cause() != waiting.None && a.ctx.Err() != nil:
		err = a.ctx.Err() // and not that of the interruption
	}
	return g.undecided(a.ctx, err)
}

// mustRestart reports whether a wait that ended with an error begins again with another setup.
func (a *attempt) mustRestart(err error) bool {
	if errors.Is(err, ErrRefused) || a.ctx.Err() != nil {
		return false
	}
	c := a.waiter.Cause()
	return c == waiting.Forgotten || c == waiting.Changed
}

// waitAndPass waits at stages until the call has passed all stages of the setup, or is interrupted.
// at is the stage that has refused the call, or allStages if it has tried none. ended reports
// whether err is the error of a wait. Otherwise a stage has refused the call, and has counted that.
func (g *setup) waitAndPass(a *attempt, at stage) (ended bool, err error) {
	if g.waits != nil {
		g.waits.add(a.waiter, waitTerms{setup: g, began: a.began, end: a.last})
	}
	inBreaker.Watch(g.breaker, a.waiter)
	defer func() {
		inBreaker.Unwatch(g.breaker, a.waiter)
		if g.waits != nil {
			a.last = g.waits.remove(a.waiter)
		}
	}()
	if at == allStages {
		at, err = g.pass(a)
	}
	for at < allStages && err == nil {
		if err = g.waitAt(a, at); err != nil {
			return true, err
		}
		a.now = time.Now()
		at, err = g.pass(a)
	}
	return false, err
}

// waitAt waits for the thing that a call needs at a stage. A call that waits for a slot gives its
// token back, and takes one again afterwards, and the other way round. If calls kept tokens while
// they wait for slots, all of them could begin at the moment at which the slots fall free, whatever
// the limit. Only the token of the remote is kept, because it costs a round trip, and during a hold
// not even that.
func (g *setup) waitAt(a *attempt, at stage) error {
	switch at {
	case holdStage:
		g.giveBack(a, allStages)
		return g.waitOutHold(a)
	case remoteStage:
		return g.waitForRemote(a)
	default: // the limiter or the bound
	}
	if a.hasToken || a.hasSlot {
		g.giveBack(a, remoteStage)
	}
	if at == tokenStage {
		l := g.limiter.(limiter.WaitLimiter) // as Parts.Validate says
		r, err := inLimiter.WaitReserve(a.ctx, a.waiter, l, g.tokens(a), a.refused, a.last.Sub(a.now))
		if err == nil {
			a.tokens.local, a.hasToken, a.counted = r, true, true
		}
		return err
	}
	ctx, release := a.waiter.Context(a.ctx)
	defer release()
	s, err := g.waitForSlot(ctx, a.last, waitToOccupy)
	a.slot, a.hasSlot = s, err == nil
	return err
}

// waitForRemote waits for a token of the remote. The call keeps its token of the limiter meanwhile,
// and then takes one for the present time instead.
func (g *setup) waitForRemote(a *attempt) error {
	ctx, release := a.waiter.Context(a.ctx)
	defer release()
	var granted remote.Tokens
	err := inLimiter.WaitAtMost(ctx, a.last.Sub(a.now), func(ctx context.Context) (err error) {
		granted, err = remote.Wait(ctx, g.remote, g.remoteTokens(a))
		return err
	})
	if _, refused := errors.AsType[*limiter.LimitedError](err); refused {
		return err
	}
	if err != nil {
		return g.notRefused(err)
	}
	a.tokens.remote, a.hasRemote = granted, true
	g.giveBack(a, remoteStage)
	return nil
}

// waitOutHold waits until the hold has ended. It refuses the call at once if the hold ends after
// the wait or after the deadline of the context.
func (g *setup) waitOutHold(a *attempt) error {
	held := a.held
	if deadline, ok := a.ctx.Deadline(); ok && deadline.Before(held) {
		return &limiter.LimitedError{Name: g.name, Reason: limiter.PastDue, Until: held}
	}
	if held.After(a.last) {
		return &limiter.LimitedError{Name: g.name, Reason: limiter.Held, Until: held}
	}
	for left := held.Sub(a.now); left > 0; left = held.Sub(g.now()) {
		cause := a.waiter.Block(a.ctx.Done(), nil, left)
		if err := a.ctx.Err(); err != nil {
			return err
		}
		if cause != waiting.None {
			return waiting.ErrInterrupted
		}
	}
	return nil
}

// refusalOfBreaker returns the error for a call that waited when the breaker opened. The breaker
// may have closed since.
func (g *Gate) refusalOfBreaker() error {
	if err := inBreaker.CheckAt(g.breaker, g.now()); err != nil {
		return err
	}
	return inBreaker.Refuse(g.breaker, openedText)
}

// withReason adds the gate's name to an error of a limiter if the error has no name, and MaxWait if
// the call could not wait for longer. If a hold was the reason that no token was available in time,
// the Reason becomes limiter.Held.
func (g *Gate) withReason(err error, maxWait time.Duration) error {
	if full, ok := errors.AsType[*inflight.FullError](err); ok {
		e := *full
		e.Name = g.nameOfBound(e.Name)
		inBound.NameMaxWait(&e, maxWait)
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
	tooLong := e.Reason == limiter.NoTokens && !e.Until.IsZero()
	if held := g.heldUntil(g.now()); tooLong && !held.IsZero() {
		e = limiter.LimitedError{Name: g.name, Reason: limiter.Held, Until: e.Until}
		if held.After(e.Until) {
			e.Until = held
		}
	}
	if tooLong || e.Reason == limiter.Held {
		inLimiter.NameMaxWait(&e, maxWait)
	}
	return &e
}

// heldUntil returns when the hold ends, or the zero time if the gate is not held.
func (g *Gate) heldUntil(now time.Time) (t time.Time) {
	if g.lastHold.Load().Load() == 0 {
		return t
	}
	if end, held := g.hold.endOf(int64(now.Sub(g.epoch))); held {
		t = g.epoch.Add(time.Duration(end))
	}
	return t
}

// waitTerms are what Reconfigure needs to know of a call that waits, and may change.
type waitTerms struct {
	setup *setup      // with which the call waits
	began time.Time   // when the wait began
	end   time.Time   // when the wait ends
	timer *time.Timer // interrupts the wait at end; nil unless Reconfigure has shortened it
}

// waits are the calls that wait at a gate or at the gates of a group, so that Reconfigure reaches
// them.
type waits struct {
	mu  sync.Mutex
	all map[waiter]waitTerms
}

// add adds a wait. Reconfigure may already have replaced the setup of the wait, so add adopts the
// present config. If the key was forgotten meanwhile, add interrupts the wait, as forget does.
func (all *waits) add(w waiter, terms waitTerms) {
	all.mu.Lock()
	defer all.mu.Unlock()
	if all.all == nil {
		all.all = map[waiter]waitTerms{}
	}
	if terms.setup.keyed != nil || terms.setup.Gate.setup.Load() != terms.setup {
		terms = terms.adopt(w)
	}
	if k := terms.setup.keyed; k != nil && k.hasLeft() {
		w.Interrupt(waiting.Forgotten)
	}
	all.all[w] = terms
}

// remove ends a wait, and returns when it would have ended at the latest.
func (all *waits) remove(w waiter) (end time.Time) {
	all.mu.Lock()
	defer all.mu.Unlock()
	terms := all.all[w]
	delete(all.all, w)
	if terms.timer != nil {
		terms.timer.Stop()
	}
	return terms.end
}

// forget interrupts the calls of a key that wait, because the key was forgotten.
func (all *waits) forget(isOf func(member) bool) {
	all.mu.Lock()
	defer all.mu.Unlock()
	for w, terms := range all.all {
		if isOf(terms.setup.keyed) {
			w.Interrupt(waiting.Forgotten)
		}
	}
}

// adopt applies the present configs of the gates to all calls that wait.
func (all *waits) adopt() {
	all.mu.Lock()
	defer all.mu.Unlock()
	for w, terms := range all.all {
		all.all[w] = terms.adopt(w)
	}
}

// adopt makes the call wait again if its gate has another limiter or another bound now. If MaxWait
// is shorter now, adopt makes the call stop waiting in time.
func (t waitTerms) adopt(w waiter) waitTerms {
	s := t.setup.Gate.setup.Load().currentSetup() // a key without room has another gate
	if (s.limiter == nil) != (t.setup.limiter == nil) || s.limitsSet != t.setup.limitsSet || s.inFlight != t.setup.inFlight {
		w.Interrupt(waiting.Changed)
	}
	end := t.began.Add(s.maxWait)
	if !end.Before(t.end) {
		return t
	}
	t.end = end
	if t.timer != nil {
		t.timer.Stop()
	}
	t.timer = time.AfterFunc(end.Sub(s.now()), func() { w.Interrupt(waiting.Changed) })
	return t
}
