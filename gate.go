package weir

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/inflight"
	"github.com/weir-go/weir/internal/friend"
	"github.com/weir-go/weir/internal/places"
	"github.com/weir-go/weir/internal/sentinel"
	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/throttle"
	"github.com/weir-go/weir/window"
)

// ErrRefused is matched by every error with which a gate, breaker, limiter or throttle refuses a
// call: use errors.Is. A refused call never reaches the service, so breakers ignore such errors.
var ErrRefused = sentinel.ErrRefused

// What gates use of other packages beyond their API.
var (
	inBreaker  = breaker.Inside(friend.Key{})
	inBound    = inflight.Inside(friend.Key{})
	inLimiter  = limiter.Inside(friend.Key{})
	inThrottle = throttle.Inside(friend.Key{})
)

// Gate guards the calls to one service with a breaker and, optionally, with limits on the rate of
// calls and on the calls in flight. [New], [Join] and [NewGroup] make gates; the zero value is not
// usable. All methods are safe for concurrent use.
type Gate struct {
	setup    atomic.Pointer[setup]
	breaker  *breaker.Breaker
	lastHold atomic.Pointer[atomic.Int64] // when the last hold ends; 0 if there is none
	name     string
	epoch    time.Time

	hold interface {
		endOf(at int64) (int64, bool)
		extend(at int64, d, longest time.Duration, share uint64) (stretched time.Duration)
		refused()
	}
	counts atomic.Pointer[admissions] // nil until a call is counted
	// the moments at which refused calls may retry; nil until one is refused
	places atomic.Pointer[places.Places]
	waits  *waits    // nil for a gate of Join, which is not reconfigured
	keyed  member    // nil for a gate that is not in a group
	own    *ownParts // nil for a gate of Join or of a group

	told atomic.Pointer[told] // what the service says is left; nil if it has said nothing

	first setup // at first setup points to it, which saves an allocation
}

// member is what a gate of a group knows of the group.
type member interface {
	current() *Gate
	ofKey() *Gate
	hasLeft() bool
	hasRoom() bool
	maxKeys() int
	noBucket() (maxBuckets int)
	countShared() bool
	uncountShared()
	ownBound() bool
}

// setup holds the parts of a gate other than its breaker. Reconfigure replaces it as a whole, so a
// call gives back what it has acquired to the parts of the same setup.
type setup struct {
	*Gate

	onlyBreaker bool // there is nothing besides the breaker and inFlight
	counting    bool // inFlight counts the calls that get a slot at once
	shared      bool // inFlight is that of all keys without room
	fixed       bool // inFlight is fixed, and no other gate shares it
	costs       bool // a call takes its cost of the limiter: see WithCost
	remoteCosts bool // a call takes its cost of the remote
	ownBuckets  bool // the limiter is that of a group's Gate.Rate
	limitsSet   any  // identifies the limits of Group.SetLimits; nil without them

	chances *chances     // nil if hopeless calls are not refused
	retries *RetryBudget // nil if retries are not bounded
	// the limiter, if its epoch and that of the breaker are the gate's
	bucket   *limiter.TokenBucket
	limiter  limiter.Limiter      // nil if there is none
	timed    limiter.TimedLimiter // the limiter, if it has this type
	remote   limiter.Remote       // nil if there is none
	throttle *throttle.Throttle   // nil if there is none
	inFlight *inflight.Limiter    // nil if there is none

	maxWait time.Duration // MaxWait
}

// New returns a gate with a new breaker and, if c.Rate is set, a new token bucket. The name appears
// in errors and metrics. New panics with the error of c.Validate if c is invalid.
func New(name string, c Config) *Gate {
	if err := c.Validate(); err != nil {
		panic(err)
	}
	g := newGate(name)
	g.breaker = inBreaker.New(name, c.Breaker, g.epoch)
	g.own, g.waits = new(ownParts), new(waits)
	g.apply(c, &g.first)
	return g
}

// newGate returns a gate without a breaker and a limiter.
func newGate(name string) *Gate {
	g := &Gate{name: name, epoch: time.Now()}
	g.hold = &ownHold{gate: g}
	g.lastHold.Store(&neverHeld)
	g.first.Gate = g
	g.setup.Store(&g.first)
	return g
}

// nilFunctionText is the panic of a call without a function.
const nilFunctionText = "weir: the function to call is nil"

// Run calls fn if the gate allows the call, and returns the error of fn. If the gate refuses the
// call, Run returns an error that matches ErrRefused, such as a [*breaker.OpenError], a
// [*limiter.LimitedError], an [*inflight.FullError], a [*RetryError] or a [*HopelessError]. If ctx
// is already done, Run returns the error of ctx and counts nothing. If a [limiter.Remote] fails to
// decide, Run returns its error: see [Parts].
//
// If fn panics or calls runtime.Goexit, the call counts as a failure and the panic propagates. Run
// panics if fn is nil.
func (g *Gate) Run(ctx context.Context, fn func(context.Context) error) error {
	if fn == nil {
		panic(nilFunctionText)
	}
	var permit Permit
	if err := g.acquire(ctx, &permit); err != nil {
		return err
	}
	return permit.run(ctx, fn)
}

// Do is [Gate.Run] for a function that returns a value.
func Do[T any](ctx context.Context, g *Gate, fn func(context.Context) (T, error)) (v T, err error) {
	if fn == nil {
		panic(nilFunctionText)
	}
	var permit Permit
	if err = g.acquire(ctx, &permit); err != nil {
		return v, err
	}
	if permit.of == nil {
		err = permit.breaker.Run(ctx, func(ctx context.Context) (err error) {
			v, err = fn(ctx)
			return err
		})
		return v, err
	}
	returned := false
	defer func() { permit.end(ctx, err, nil, returned) }()
	v, err = fn(ctx)
	returned = true
	return v, err
}

// DoOr is [Do] with a fallback. If the gate refuses the call, DoOr returns the result of fallback,
// which gets the error of the refusal. DoOr returns an error of fn as it is.
func DoOr[T any](ctx context.Context, g *Gate, fn func(context.Context) (T, error), fallback func(context.Context, error) (T, error)) (v T, err error) {
	if fn == nil || fallback == nil {
		panic(nilFunctionText)
	}
	called := false
	v, err = Do(ctx, g, func(ctx context.Context) (T, error) {
		called = true
		return fn(ctx)
	})
	if !called && errors.Is(err, ErrRefused) {
		return fallback(ctx, err)
	}
	return v, err
}

// Allow acquires the permit for a call that is not a function call, or returns the error that Run
// would return. The caller records the outcome with the permit: see [Permit].
func (g *Gate) Allow(ctx context.Context) (permit Permit, err error) {
	if err = g.acquire(ctx, &permit); err == nil {
		permit.releaseIfForgotten()
	}
	return
}

// Reserve is Allow for a call that may not be made, for example because another limit refuses it.
// In that case, record breaker.Ignored with the permit and call refund, which gives the tokens of
// the call back: see [limiter.Reservation.Refund]. For a Remote, refund may block, even if ctx is
// done.
func (g *Gate) Reserve(ctx context.Context) (permit Permit, refund func(), err error) {
	taken := new(tokens)
	if err = ctx.Err(); err == nil {
		a := attempt{ctx: ctx, now: g.now()}
		if err = g.setup.Load().acquireInOrder(&a, &permit); err == nil {
			permit.releaseIfForgotten()
			*taken = a.tokens
		}
	}
	refund = func() { taken.giveBack(ctx) }
	return
}

// Hold refuses all calls for d, because the service has said when to retry. Hold lengthens d by a
// random share from 0 to below 0.1. Without this, all clients that a service told the same d would
// retry at the same moment. The share is drawn when a hold begins. If breaker.Config.CooldownJitter
// of the gate's breaker is set, it replaces the bound 0.1, or disables the share. The refusal is a
// [*limiter.LimitedError] whose Reason is limiter.Held. A call waits instead if the gate's MaxWait
// is long enough. Hold never shortens an earlier hold. It does nothing if d is 0 or less.
//
// Hold also holds the gate's limiter if the limiter has a method Hold, so that the calls in its
// queue wait too. Calls that were allowed before are not affected. Packages weirhttp and weirgrpc
// call Hold when a server asks clients to wait. Run and Do do not search the errors of functions
// for a wait.
func (g *Gate) Hold(d time.Duration) {
	if d <= 0 {
		return
	}
	now := time.Since(g.epoch)
	longest, share := inBreaker.Stretch(g.breaker, g.epoch.Add(now), d)
	d = g.hold.extend(int64(now), d, longest, share)
	if l, ok := g.setup.Load().limiter.(interface{ Hold(d time.Duration) }); ok {
		l.Hold(d)
	}
}

// Name returns the gate's name.
func (g *Gate) Name() string { return g.name }

// Breaker returns the gate's breaker.
func (g *Gate) Breaker() *breaker.Breaker { return g.breaker }

// Limiter returns the gate's limiter, or nil if there is none. It is the same after Reconfigure, as
// long as there is a Rate.
func (g *Gate) Limiter() limiter.Limiter { return g.setup.Load().limiter }

// Tripped reports whether the breaker has opened and has not closed since: see
// [breaker.Breaker.Tripped].
func (g *Gate) Tripped() bool { return g.breaker.Tripped() }

// Explain returns in words why the breaker refuses calls: see [breaker.Breaker.Explain]. If the
// breaker refuses none, it returns why an adaptive bound does: see [inflight.Limiter.Explain].
func (g *Gate) Explain() string {
	why := g.breaker.Explain()
	if l := g.setup.Load().currentSetup().inFlight; why == "" && l != nil {
		why = l.Explain()
	}
	return why
}

// Retries returns the retry budget of the gate, or nil if there is none. It is the same after
// Reconfigure, as long as there is a RetryShare. For a gate of a [Group] the counts are those of
// all gates of the group.
func (g *Gate) Retries() *RetryBudget { return g.setup.Load().retries }

// Totals returns the counts of all calls since the breaker was made. Refused counts the calls that
// the breaker refused; see Stats for the calls that a limit refused.
func (g *Gate) Totals() window.Totals { return g.breaker.Totals() }

// minRetryAfter is the shortest time that RetryAfter returns for a refusal.
const minRetryAfter = time.Millisecond

// RetryAfter returns how long to wait before retrying: the result of the first RetryAfter method in
// err's tree, or 0 if there is none. For a refusal it is at least 1ms, so that a caller that waits
// and retries does not spin, and limiter.Never if the call would never be allowed. It is 0 for
// errors that only serve as targets of errors.Is, such as ErrRefused or breaker.ErrOpen, because
// they contain no time.
//
// Callers that are refused at once should not all retry at the same moment, so each of them is told
// a different one. A rate limit tells each of them the moment at which one more token is there: see
// limiter.LimitedError. A half-open or recovering breaker spreads the moments over a second: see
// breaker.OpenError. Call RetryAfter once per refusal.
func RetryAfter(err error) time.Duration {
	var e interface{ RetryAfter() time.Duration }
	if !errors.As(err, &e) {
		return 0
	}
	d := e.RetryAfter()
	if d < minRetryAfter && errors.Is(err, ErrRefused) {
		return minRetryAfter
	}
	return d
}

// DoResult is [Do] for a function whose value also says whether the service failed, such as a
// response with a status. judge returns the outcome; it takes the place of breaker.Config.Classify.
// Like Classify, it is not called for a call that the caller cancelled or that another guard
// refused.
func DoResult[T any](ctx context.Context, g *Gate, fn func(context.Context) (T, error), judge func(T, error) breaker.Outcome) (v T, err error) {
	if fn == nil || judge == nil {
		panic(nilFunctionText)
	}
	var permit Permit
	if err = g.acquire(ctx, &permit); err != nil {
		return v, err
	}
	returned := false
	defer func() {
		permit.end(ctx, err, func(err error) breaker.Outcome { return judge(v, err) }, returned)
	}()
	v, err = fn(ctx)
	returned = true
	return v, err
}

// Parts are the parts of a gate made by [Join]. Several gates may share a part.
type Parts struct {
	// Breaker refuses calls while the service fails. Required.
	Breaker *breaker.Breaker
	// Limiter limits the calls of all gates that share it. Default no limit.
	Limiter limiter.Limiter
	// Costs limits what calls cost, such as the tokens of a language model: see WithCost. A call
	// needs both a token of Limiter and its cost of Costs. The gate's Limiter is then a Joint of
	// both, and of its metrics those of the tokens are those of Costs. Default no limit.
	Costs limiter.Limiter
	// Remote is a limit outside this process, such as a limit of a fleet. It is called last, after
	// Breaker and Limiter have allowed the call. If it returns an error, the call is not made, and
	// the error does not match ErrRefused. A call keeps its token of Remote while it waits for a
	// slot, and begins later than Limiter has allowed it by up to the time that Remote.Take took.
	// Default no limit.
	Remote limiter.Remote
	// RemoteCosts makes Remote limit what calls cost, as Costs does. A Remote needs a method Charge
	// for calls that cost more than was estimated: see limiter.Remote. It requires a Remote.
	// Default false: each call takes one token of Remote.
	RemoteCosts bool
	// Throttle refuses a share of the calls to an overloaded service. It is called after Breaker,
	// so it does not count calls that Breaker refuses, and before Limiter, so a call that it
	// refuses spends no token. The outcome recorded with the gate's permit is also recorded with
	// Throttle. A throttle has the same metrics as a breaker, so the two need different names.
	// Default none.
	Throttle *throttle.Throttle
	// InFlight bounds the calls in flight of all gates that share it: see Config.MaxConcurrent.
	// Default no bound.
	InFlight *inflight.Limiter
	// Retries bounds the retries and hedges of all gates that share it: see WithAttempt. Default no
	// bound.
	Retries *RetryBudget
	// RefuseHopeless refuses calls whose deadlines are too near: see Config.RefuseHopeless. Each
	// gate has its own estimate. Default false.
	RefuseHopeless bool
	// MaxWait is the longest time that a call waits for Limiter, Costs, Remote and InFlight
	// together: see Config.MaxWait. It requires that Limiter, Costs and Remote, if set, are a
	// limiter.WaitLimiter. If a Remote refuses a call and the call then waits for it, the Remote
	// counts both the refusal and the wait. Default 0, which refuses calls at once.
	MaxWait time.Duration
}

// Validate returns an error that names all invalid fields, or nil if there are none.
func (p Parts) Validate() error {
	var errs []error
	fault := func(format string, args ...any) { errs = append(errs, fmt.Errorf("weir: "+format, args...)) }
	if p.Breaker == nil {
		fault("Breaker is nil, must be a *breaker.Breaker")
	}
	if p.Breaker != nil && p.Throttle != nil && inThrottle.Name(p.Throttle) == p.Breaker.Name() {
		fault("Throttle and Breaker are both named %q, must have different names because their metrics have the same names", p.Breaker.Name())
	}
	if p.RemoteCosts && p.Remote == nil {
		fault("RemoteCosts is true, must be false without a Remote")
	}
	if p.MaxWait < 0 {
		fault("MaxWait is %v, must be at least 0", p.MaxWait)
	}
	if p.MaxWait <= 0 {
		return errors.Join(errs...)
	}
	if p.Limiter == nil && p.Costs == nil && p.Remote == nil && p.InFlight == nil {
		fault("MaxWait is %v, must be 0 without a Limiter, Costs, a Remote and an InFlight", p.MaxWait)
	}
	mustWait := func(field string, limit any) {
		if _, ok := limit.(limiter.WaitLimiter); limit != nil && !ok {
			fault("MaxWait is %v, must be 0 because %s is a %T, which is not a limiter.WaitLimiter", p.MaxWait, field, limit)
		}
	}
	mustWait("Limiter", p.Limiter)
	mustWait("Costs", p.Costs)
	mustWait("Remote", p.Remote)
	return errors.Join(errs...)
}

// limits returns the limiter of a gate for calls, of which each takes one token of calls and its
// cost of costs. Both may be nil.
func limits(calls, costs limiter.Limiter) limiter.Limiter {
	switch {
	case costs == nil:
		return calls
	case calls == nil:
		return costs
	default:
		return limiter.NewJoint("", limiter.PerRequest(calls), costs)
	}
}

// Join returns a gate of parts that you have made. The name appears in errors and metrics. Hold
// holds the gate and its Limiter: other gates with the same Limiter are affected, and other gates
// with the same Breaker or Remote are not. Join panics with the error of p.Validate if p is
// invalid.
func Join(name string, p Parts) *Gate {
	if err := p.Validate(); err != nil {
		panic(err)
	}
	g := newGate(name)
	g.breaker = p.Breaker
	s := &g.first
	s.limiter, s.remote, s.throttle, s.maxWait = limits(p.Limiter, p.Costs), p.Remote, p.Throttle, p.MaxWait
	s.timed, _ = s.limiter.(limiter.TimedLimiter)
	s.costs, s.remoteCosts = p.Costs != nil, p.RemoteCosts
	s.onlyBreaker = s.limiter == nil && p.Remote == nil && p.Throttle == nil
	s.inFlight, s.retries = p.InFlight, p.Retries
	if p.RefuseHopeless {
		s.setChances()
	}
	return g
}
