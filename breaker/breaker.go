package breaker

import (
	"context"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/internal/tally"
	"github.com/weir-go/weir/window"
)

// Breaker stops calls to a service that fails. All its methods may be called from
// any number of goroutines.
type Breaker struct {
	name        string
	config      Config // with its defaults
	epoch       time.Time
	classify    func(error) Outcome
	failureRate rate
	minCalls    int64
	timed       bool // the time that calls take matters

	tally     *tally.Calls
	phase     atomic.Pointer[phase]
	late      atomic.Int64
	abandoned atomic.Int64
	changes   changes
	series    sync.Once
	shown     *series

	mu     sync.Mutex // held to change the phase, and to use the probes
	probes probes
}

// New returns a closed breaker on the real clock. The name stands in errors,
// changes and metrics. New panics with the error of c.Validate if there is one.
func New(name string, c Config) *Breaker { return NewAt(name, c, time.Now()) }

// NewAt is New for a breaker that begins at t0 and lives on the times given to
// the At verbs.
func NewAt(name string, c Config, t0 time.Time) *Breaker {
	if err := c.Validate(); err != nil {
		panic(err)
	}
	c = c.orDefault()
	width := (c.Window + time.Duration(c.Buckets) - 1) / time.Duration(c.Buckets)
	b := &Breaker{
		name: name, config: c, epoch: t0, classify: c.Classify,
		failureRate: rateOf(c.FailureRate), minCalls: int64(c.MinCalls),
		tally: tally.New(width, c.Buckets, math.MaxInt64),
	}
	b.changes.tell = c.OnChange
	b.phase.Store(&phase{state: Closed, until: math.MaxInt64})
	return b
}

// Run calls fn if the breaker lets it pass, books its result and returns its
// error; otherwise it returns an [*OpenError], and fn has not been called. Where
// ctx is done already it returns ctx's error and counts nothing.
//
// A panic of fn counts as a failure and goes on up untouched; so does the end of
// its goroutine. Run panics if fn is nil.
func (b *Breaker) Run(ctx context.Context, fn func(context.Context) error) error {
	m, err := b.admit(ctx, fn == nil)
	if err != nil {
		return err
	}
	outcome := Failure // until fn has returned: it may panic or end its goroutine
	defer func() { b.settle(&m, outcome, unread) }()
	err = fn(ctx)
	outcome = Ignored // until Classify has
	outcome = b.Outcome(ctx, err)
	return err
}

// Do is [Breaker.Run] for a function that returns a value.
func Do[T any](ctx context.Context, b *Breaker, fn func(context.Context) (T, error)) (v T, err error) {
	m, err := b.admit(ctx, fn == nil)
	if err != nil {
		return v, err
	}
	outcome := Failure
	defer func() { b.settle(&m, outcome, unread) }()
	v, err = fn(ctx)
	outcome = Ignored
	outcome = b.Outcome(ctx, err)
	return v, err
}

func (b *Breaker) admit(ctx context.Context, missing bool) (Permit, error) {
	if missing {
		panic("breaker: the function to call is nil")
	}
	if err := ctx.Err(); err != nil {
		return Permit{}, err
	}
	return b.allow(unread)
}

// Name returns the breaker's name.
func (b *Breaker) Name() string { return b.name }

// State returns the state. An open breaker whose cooldown is over is half-open,
// whether anybody has called since or not.
func (b *Breaker) State() State { return b.phase.Load().at(time.Since(b.epoch)) }

// StateAt is State at the time t.
func (b *Breaker) StateAt(t time.Time) State { return b.phase.Load().at(t.Sub(b.epoch)) }

// IsOpen reports whether the breaker is open: whether it refuses all calls.
func (b *Breaker) IsOpen() bool { return b.State() == Open }

// Counts returns the calls that the state is judged by: those of the window since
// the breaker closed; while it is open those that opened it; while it is half-open
// the results of the probes. Refused counts since the state began.
func (b *Breaker) Counts() window.Counts { return b.counts(time.Since(b.epoch)) }

// CountsAt is Counts as seen at the time t.
func (b *Breaker) CountsAt(t time.Time) window.Counts { return b.counts(t.Sub(b.epoch)) }

// Totals returns the calls of the breaker's whole life.
func (b *Breaker) Totals() window.Totals { return window.Totals(b.tally.Totals()) }

func (b *Breaker) counts(at time.Duration) window.Counts {
	p := b.phase.Load()
	refused := b.tally.Totals().Refused - p.floor.Refused
	var c window.Counts
	switch p.at(at) {
	case Closed:
		c = window.Counts(b.tally.Window(at, p.floor))
	case Open:
		c = p.tripped
	case HalfOpen:
		if p.state == Open { // due, and nobody has called since
			return c
		}
		c = *p.probed.Load()
	}
	c.Refused = refused
	return c
}
