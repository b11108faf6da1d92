package breaker

import (
	"cmp"
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/internal/clock"
	"github.com/weir-go/weir/internal/striped"
	"github.com/weir-go/weir/window"
)

// Breaker stops calls to a service that fails. Make one with [New]: the zero value does not work.
// All methods may be called from any number of goroutines.
type Breaker struct {
	name     string
	clock    clock.Clock
	member   *membership // nil for a breaker that is not in a group
	shadowOf *Breaker    // the breaker whose shadow this is; nil for all other breakers
	regime   atomic.Pointer[regime]

	*withShadow
	failures atomic.Pointer[failureRing] // nil until a call fails
	rare     atomic.Pointer[rareParts]   // nil until one of them is needed
	observed atomic.Pointer[observed]    // nil until the metrics are read
	places   *openPlaces                 // of the group; nil for a breaker that is not in a group
	placed   bool                        // b has a place; guarded by mu

	// far from phase, because calls write these and read phase
	refused striped.Counter
	active  atomic.Int64 // of a member of a group: calls in flight, which keep its key
}

// withShadow is what a breaker shares with its shadow.
type withShadow struct {
	mu    sync.Mutex // held to change phase and to use slots
	usual usualDuration
}

// rareParts are what most breakers never need: transitions, callers that wait for one, results
// that do not count, overrides and exemplars.
type rareParts struct {
	late, abandoned             atomic.Int64
	shadowOpened, shadowRefused atomic.Int64
	unanswered                  uninformativeCalls
	exemplars                   atomic.Pointer[exemplars]
	changes                     changeQueue
	slots                       probeSlots // guarded by mu
	own                         override   // set by hand; guarded by mu
}

// rareParts returns the rare parts of b to change them.
func (b *Breaker) rareParts() *rareParts {
	if r := b.rare.Load(); r != nil {
		return r
	}
	b.rare.CompareAndSwap(nil, &rareParts{changes: changeQueue{of: b}})
	return b.rare.Load()
}

// noRareParts are those of a breaker that has needed none. They never change.
var noRareParts = new(rareParts)

// rareSoFar returns the rare parts of b to read them.
func (b *Breaker) rareSoFar() *rareParts { return cmp.Or(b.rare.Load(), noRareParts) }

// New returns a breaker that is closed, or in the state c.Force. The name appears in errors,
// changes and metrics. New panics with the error of c.Validate if there is one.
func New(name string, c Config) *Breaker { return newAt(name, c, time.Now()) }

// newAt is New for a breaker that begins at t0. If the first time given is before t0 or more than
// 146 years after it, the breaker begins at that time instead. So a breaker in a package variable
// can be used with the clock of a test. A time before the newest time is stale: it counts as the
// newest time, and ends no cooldown and no window.
func newAt(name string, c Config, t0 time.Time) *Breaker {
	if err := c.Validate(); err != nil {
		panic(err)
	}
	return build(name, newRules(c.orDefault()), t0, nil)
}

// build returns a breaker with rules that other breakers may share.
func build(name string, r *rules, t0 time.Time, m *membership) *Breaker {
	b := &Breaker{name: name, member: m, withShadow: new(withShadow)}
	b.clock.Epoch = t0
	p := firstPhase(r)
	if o := b.overrideInEffect(override{}, r); o.state != "" {
		forced := *p
		forced.phase = newPhase(endlessStay(o.state, 0))
		forced.recovery, forced.under, forced.forcedFor = p.recovery, p, o.reason
		p = &forced
	}
	p.complete(b)
	b.regime.Store(p)
	return b
}

// Run calls fn unless the breaker refuses the call, records the result and returns the error of fn.
// If the call is refused, fn is not called and the error is an [*OpenError]. If ctx is done
// already, Run returns the error of ctx and counts nothing.
//
// If fn panics or calls runtime.Goexit, the call counts as a failure, unless the caller has
// cancelled ctx, and the panic propagates. Run panics if fn is nil.
func (b *Breaker) Run(ctx context.Context, fn func(context.Context) error) (err error) {
	if fn == nil {
		panic(nilFunctionText)
	}
	if err = ctx.Err(); err != nil {
		return err
	}
	p := b.regime.Load()
	if p.plain {
		start, returned := b.startOf(p), false
		defer func() { b.recordPlain(ctx, p, start, returned, err) }()
		err = fn(ctx)
		returned = true
		return err
	}
	if err = b.refuseOpen(p); err != nil {
		return err
	}
	var m Permit
	if err = b.allow(&m, p, unread); err != nil {
		return err
	}
	return m.Run(ctx, fn)
}

// Do is [Breaker.Run] for a function that returns a value.
func Do[T any](ctx context.Context, b *Breaker, fn func(context.Context) (T, error)) (v T, err error) {
	if fn == nil {
		panic(nilFunctionText)
	}
	if err = ctx.Err(); err != nil {
		return v, err
	}
	p := b.regime.Load()
	if p.plain {
		start, returned := b.startOf(p), false
		defer func() { b.recordPlain(ctx, p, start, returned, err) }()
		v, err = fn(ctx)
		returned = true
		return v, err
	}
	if err = b.refuseOpen(p); err != nil {
		return v, err
	}
	var m Permit
	if err = b.allow(&m, p, unread); err != nil {
		return v, err
	}
	defer m.finish(ctx, &err, m.issuer.rules.config.Classify)
	v, err = fn(ctx)
	m.returned = true
	return v, err
}

// DoResult is [Do] for a call whose value also says whether the service failed, such as a response
// with a status. judge returns the outcome instead of Config.Classify. It is not called for the
// calls for which Config.Classify is not called.
func DoResult[T any](ctx context.Context, b *Breaker, fn func(context.Context) (T, error), judge func(T, error) Outcome) (v T, err error) {
	if fn == nil || judge == nil {
		panic(nilFunctionText)
	}
	if err = ctx.Err(); err != nil {
		return v, err
	}
	var m Permit
	if err = b.allow(&m, b.regime.Load(), unread); err != nil {
		return v, err
	}
	defer m.finish(ctx, &err, func(err error) Outcome { return judge(v, err) })
	v, err = fn(ctx)
	m.returned = true
	return v, err
}

// nilFunctionText is the panic of a call without a function.
const nilFunctionText = "breaker: the function to call is nil"

// Name returns the name of the breaker.
func (b *Breaker) Name() string { return b.name }

// State returns the state. It counts nothing, so health checks may call it. An open breaker whose
// cooldown is over is half-open, even if no call was made since.
func (b *Breaker) State() State {
	return b.stateAt(b.peekNow())
}

func (b *Breaker) stateAt(at time.Duration) State {
	return b.regime.Load().stayAt(at).state
}

// Tripped reports whether the breaker has opened and has not closed since. Use it for alerts: it
// stays true through cooldowns and probes, so it does not flicker while the service is down. Under
// an override it is true only in the state ForcedOpen, whatever the state underneath is.
func (b *Breaker) Tripped() bool {
	b.peekNow() // restarts the breaker if its clock is a new one

	// time alone leads only from Open to HalfOpen and back
	return b.regime.Load().passes != allCalls
}

// Counts returns the calls by which the state is judged:
//
//   - Closed: the calls in the window since the breaker closed.
//   - Open: the calls that opened the breaker.
//   - HalfOpen: the results of the probes.
//   - Recovering: the calls in the window since the probes succeeded.
//   - ForcedClosed, Shadow: the calls in the window since the state began.
//
// Refused counts the calls refused since the state began, in every state.
func (b *Breaker) Counts() window.Counts {
	return b.counts(b.peekNow())
}

func (b *Breaker) counts(at time.Duration) (c window.Counts) {
	p := b.regime.Load()
	over := p.timedOut(at)
	switch p.stayAt(at).state.behavior().counts {
	case showWindow:
		c = p.counts(at)
	case showOpening:
		c = p.openedBy
	case showProbes:
		if !over {
			c = *p.probed.Load()
		}
	case showNothing:
	}
	c.Refused = 0
	if !over { // otherwise the clock has begun another state, in which no call was made yet
		c.Refused = int64(b.refused.Load()) - p.refusedBefore
	}
	return c
}

// Totals returns all calls since the breaker was made.
func (b *Breaker) Totals() window.Totals {
	t := window.Totals(b.regime.Load().totals())
	t.Refused = int64(b.refused.Load())
	return t
}

// Latency returns the durations of the calls in the window, if Config.Latency is set.
func (b *Breaker) Latency() window.Latency {
	at := b.peekNow()
	return window.Latency(b.regime.Load().tally.Latency(at))
}

// LifetimeLatency returns the durations of all calls, if Config.Latency is set.
func (b *Breaker) LifetimeLatency() window.Latency {
	return b.lifetimeLatency(b.regime.Load())
}

func (b *Breaker) lifetimeLatency(p *regime) window.Latency {
	return p.past.lifetimeLatency().Plus(window.Latency(p.tally.LifetimeLatency()))
}

// ShadowTotals returns what the breaker would have done in the state Shadow, since it was made: how
// many times it would have opened, and how many calls it would have refused.
func (b *Breaker) ShadowTotals() (opened, refused int64) {
	r := b.rareSoFar()
	return r.shadowOpened.Load(), r.shadowRefused.Load()
}

// firstPhase returns a closed phase that begins with its breaker.
func firstPhase(r *rules) *regime {
	p := &regime{phase: newPhase(endlessStay(Closed, 0)), rules: r, tally: r.newTally(r.config.Latency, 0), floor: noCounts}
	p.recovery = initialRecovery
	return p
}

// unread stands for a time that was not read from the clock yet.
const unread = clock.Unread

// Every time enters the breaker through now, at, peekNow or peekAt, none of which may be
// called under the lock. If a time is that of a new clock, they restart the breaker first. So the
// phase must be loaded after them.

func (b *Breaker) now() time.Duration { return b.inClock(b.clock.Now(), clock.ReadTolerance) }

func (b *Breaker) peekNow() time.Duration { return b.inClock(b.clock.PeekNow(), clock.ReadTolerance) }

func (b *Breaker) at(t time.Time) time.Duration {
	return b.inClock(b.clock.At(t), clock.GivenTolerance)
}

func (b *Breaker) peekAt(t time.Time) time.Duration {
	return b.inClock(b.clock.Peek(t), clock.GivenTolerance)
}

// justNow is at for a time that the caller has just read from the clock.
func (b *Breaker) justNow(t time.Time) time.Duration {
	return b.inClock(b.clock.At(t), clock.ReadTolerance)
}

func (b *Breaker) date(at time.Duration) time.Time { return b.clock.TimeOf(at) }

// inClock returns the offset. If its clock is a new one, it restarts the breaker first: see
// clock.IsNew.
func (b *Breaker) inClock(at, tolerance time.Duration) time.Duration {
	p := b.regime.Load()
	if at < max(p.sampledFrom, p.tally.Latest())-clock.ReadTolerance {
		b.restartIfNew(at, tolerance)
	}
	return at
}

// seen returns a time that the phase has seen, if possible the latest.
func (p *regime) seen() time.Duration { return max(p.sampledFrom, p.tally.Latest()) }

// restartIfNew is for a time that is earlier than seen.
func (b *Breaker) restartIfNew(at, tolerance time.Duration) {
	isNew := func() bool {
		return b.clock.IsNew(at, b.regime.Load().seen(), tolerance)
	}
	if !isNew() {
		return
	}
	b.mu.Lock()
	if isNew() {
		b.restart(at)
	}
	b.mu.Unlock()
	b.deliver()
}

// restart makes the breaker begin as a new one, but an override and all totals stay. Calls that
// began under an override or while the breaker was closed still count, because they may have begun
// in the new clock. The lock is held.
func (b *Breaker) restart(at time.Duration) {
	p := b.regime.Load()
	b.usual.restart(at)
	if r := b.rare.Load(); r != nil {
		r.unanswered.restart()
	}
	begun := func(s stay) *regime {
		next := p.next(s)
		next.since = at // earlier than the latest time
		next.recovery = initialRecovery
		return next
	}
	next := begun(endlessStay(Closed, at))
	if p.under != nil {
		next.generation = 0
		under := next
		next = begun(endlessStay(p.state, at))
		next.under, next.forcedFor = under, p.forcedFor
	}
	p.tally.Restart(at)
	floor := p.tally.Totals()
	next.floor = &floor
	if next.state != p.state {
		next.complete(b)
		b.publish(next, Change{From: p.state, To: next.state, Reason: "the clock is another one", origin: byClock})
		return
	}
	next.generation, next.stays.entered = p.generation, p.stays.orNone().entered
	next.complete(b)
	b.regime.Store(next)
}

// restart forgets all durations.
func (u *usualDuration) restart(at time.Duration) {
	u.cohort.Store(nil)
	u.known.Store(0)
	u.knownAt.Store(int64(at))
	u.counted.Store(int64(at) - 1)
	u.needed.Store(int64(at))
}
