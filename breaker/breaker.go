package breaker

import (
	"context"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/internal/clock"
	"github.com/weir-go/weir/internal/striped"
	"github.com/weir-go/weir/window"
)

// Breaker stops calls to a service that fails. Make one with [New]: its zero value does not work. All
// its methods may be called from any number of goroutines.
type Breaker struct {
	name     string
	clock    clock.Clock
	hold     *hold    // of a group; nil for a breaker of none
	observed *Breaker // for a shadow: the breaker that it belongs to; nil for all others
	phase    atomic.Pointer[phase]

	active        atomic.Int64
	late          atomic.Int64
	abandoned     atomic.Int64
	shadowOpened  atomic.Int64
	shadowRefused atomic.Int64
	changes       *changes
	series        sync.Once
	shown         *series
	shownTimes    perState[atomic.Int64] // the longest that observers saw in each state

	mu     *sync.Mutex // held to change the phase, and to use the probes
	probes probes

	refused striped.Counter // far from phase, which calls that are refused only read
}

// New returns a breaker, closed unless c.Initial says otherwise. The name stands in errors, changes
// and metrics. New panics with the error of c.Validate if there is one.
func New(name string, c Config) *Breaker { return NewAt(name, c, time.Now()) }

// NewAt is New for a breaker that begins at t0 and uses the times given to the At methods, for
// replay and simulation. It begins with the first time given if that is before t0, as in a test
// whose clock is not that of the package's variables, or more than 146 years after it. Otherwise a
// time that is older than the newest one is stale: it counts as the newest one, and ends no cooldown
// and no window.
func NewAt(name string, c Config, t0 time.Time) *Breaker {
	if err := c.Validate(); err != nil {
		panic(err)
	}
	return build(name, newRules(c.orDefault()), t0, nil)
}

// build makes a breaker of rules that others may share.
func build(name string, r *rules, t0 time.Time, h *hold) *Breaker {
	c := &r.config
	b := &Breaker{name: name, hold: h, changes: new(changes), mu: new(sync.Mutex)}
	b.clock.Epoch = t0
	b.changes.tell.Store(&r.config.OnChange)
	p := initial(r)
	if c.Initial != Closed {
		closed := *p
		p.state = c.Initial
		if c.Initial == Open {
			p.until = p.cooldown
		} else {
			p.under = &closed
		}
	}
	p.prepare(b)
	b.phase.Store(p)
	return b
}

// initial returns a closed phase that begins with its breaker.
func initial(r *rules) *phase {
	p := &phase{state: Closed, tally: r.newTally(), until: math.MaxInt64, reason: "initial state"}
	p.obey(r)
	p.cooldown = r.cooldown(0)
	return p
}

// Run calls fn unless the breaker refuses the call, records its result and returns its error. If the
// call is refused, fn is not called and the error is an [*OpenError]. If ctx is done already, Run
// returns its error and counts nothing.
//
// If fn panics or calls runtime.Goexit, the call counts as a failure, unless the caller has
// cancelled ctx, and the panic propagates. Run panics if fn is nil.
func (b *Breaker) Run(ctx context.Context, fn func(context.Context) error) error {
	err := ready(ctx, fn == nil)
	if err != nil {
		return err
	}
	p := b.phase.Load()
	if p.state == Open && b.clock.StartsAtEpoch() && time.Since(b.clock.Epoch) < p.until { // allow would say the same, but what refuses most should do it soonest
		refusal := p.err // before the add, which holds up loads
		b.refused.Add(1)
		return refusal
	}
	var m Permit
	if p.free() {
		m.breaker, m.phase, m.start = b, p, b.start(p)
	} else if err = b.allow(&m, p, unread); err != nil {
		return err
	}
	return m.run(ctx, fn)
}

// Do is [Breaker.Run] for a function that returns a value.
func Do[T any](ctx context.Context, b *Breaker, fn func(context.Context) (T, error)) (v T, err error) {
	if err = ready(ctx, fn == nil); err != nil {
		return v, err
	}
	p := b.phase.Load()
	if p.state == Open && b.clock.StartsAtEpoch() && time.Since(b.clock.Epoch) < p.until {
		refusal := p.err
		b.refused.Add(1)
		return v, refusal
	}
	var m Permit
	if p.free() {
		m.breaker, m.phase, m.start = b, p, b.start(p)
	} else if err = b.allow(&m, p, unread); err != nil {
		return v, err
	}
	returned := false
	defer func() {
		o := Success
		if !returned || err != nil || m.phase.classified {
			o = m.outcome(ctx, err, returned, m.phase.rules.config.Classify)
		}
		m.record(o)
	}()
	v, err = fn(ctx)
	returned = true
	return v, err
}

// DoResult is [Do] for calls whose value says whether the service failed, such as a response with
// a status: judge classifies the result in the place of Config.Classify. Cancelled and refused
// calls are ignored before it is asked, as described at Config.Classify.
func DoResult[T any](ctx context.Context, b *Breaker, fn func(context.Context) (T, error), judge func(T, error) Outcome) (v T, err error) {
	var m Permit
	if err = ready(ctx, fn == nil || judge == nil); err != nil {
		return v, err
	}
	if err = b.allow(&m, b.phase.Load(), unread); err != nil {
		return v, err
	}
	returned := false
	defer func() {
		m.record(m.outcome(ctx, err, returned, func(err error) Outcome { return judge(v, err) }))
	}()
	v, err = fn(ctx)
	returned = true
	return v, err
}

// ready reports whether a call with ctx is worth asking for.
func ready(ctx context.Context, missing bool) error {
	if missing {
		panic("breaker: the function to call is nil")
	}
	return ctx.Err()
}

// Name returns the breaker's name.
func (b *Breaker) Name() string { return b.name }

// State returns the state. It counts nothing, so it serves health probes. An open breaker whose
// cooldown is over is half-open, even if no call has come since.
func (b *Breaker) State() State {
	b = b.current()
	return b.stateAt(b.seenNow())
}

// StateAt is State at the time t.
func (b *Breaker) StateAt(t time.Time) State {
	b = b.current()
	return b.stateAt(b.seen(t))
}

func (b *Breaker) stateAt(at time.Duration) State {
	p := b.phase.Load()
	if p.state == evicted { // at this very moment: as a new breaker is
		return p.rules.config.Initial
	}
	return p.at(at).state
}

// Tripped reports whether the breaker has opened, by a verdict, by OpenFor or by ForcedOpen,
// and has not closed since. It is true through the cooldown and through every half-open round of
// probes, so it does not flicker while the service stays down: use it for alerts. Under an
// override it is true for ForcedOpen alone, whatever the state underneath is: ForcedClosed,
// Disabled and Shadow let all calls through.
func (b *Breaker) Tripped() bool {
	b = b.current()
	switch b.phase.Load().state { // the clock alone leads from Open to HalfOpen and back only
	case Open, HalfOpen, ForcedOpen:
		return true
	default:
		return false
	}
}

// Counts returns the calls that the state is judged by: those of the window since
// the breaker closed; while it is open those that opened it; while it is half-open
// the results of the probes. In the state Shadow they are all calls of the window, also those that would
// have been refused. Refused counts since the state began.
func (b *Breaker) Counts() window.Counts {
	b = b.current()
	return b.counts(b.seenNow())
}

// CountsAt is Counts as seen at the time t.
func (b *Breaker) CountsAt(t time.Time) window.Counts {
	b = b.current()
	return b.counts(b.seen(t))
}

// Totals returns the calls of the breaker's whole life.
func (b *Breaker) Totals() window.Totals { return b.current().totals() }

func (b *Breaker) totals() window.Totals {
	p := b.phase.Load()
	t := window.Totals(p.totals())
	if p.state != evicted {
		t.Refused = int64(b.refused.Load())
	}
	return t
}

// Latency returns how long the calls of the window took, if Config.Latency is set.
func (b *Breaker) Latency() window.Latency {
	b = b.current()
	return window.Latency(b.phase.Load().tally.Latency(b.seenNow()))
}

// LifetimeLatency returns how long all calls took, if Config.Latency is set.
func (b *Breaker) LifetimeLatency() window.Latency {
	b = b.current()
	return b.lifetime(b.phase.Load())
}

func (b *Breaker) lifetime(p *phase) window.Latency {
	return p.past.lifetimeLatency().Plus(window.Latency(p.tally.LifetimeLatency()))
}

func (b *Breaker) counts(at time.Duration) (c window.Counts) {
	p := b.phase.Load()
	s := p.at(at)
	switch s.state {
	case Closed, ForcedClosed, Shadow:
		c = p.counts(at)
	case Open:
		c = p.tripped
	case HalfOpen:
		if !p.over(at) {
			c = *p.live.probed.Load()
		}
	case ForcedOpen, Disabled, evicted: // nothing is judged
	}
	if p.over(at) { // the clock has brought another state, and nobody has called since
		c.Refused = 0
		return c
	}
	c.Refused = int64(b.refused.Load()) - p.refused
	return c
}
