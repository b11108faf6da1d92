package throttle

import (
	"context"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/internal/clock"
	"github.com/weir-go/weir/internal/gatehook"
	"github.com/weir-go/weir/internal/tally"
	"github.com/weir-go/weir/internal/verdict"
	"github.com/weir-go/weir/window"
)

const (
	// buckets divide the window, which moves by one bucket at a time.
	buckets = 10
	// passEvery is the time after which one call is allowed that would be refused, so that a
	// service with few calls is found to be well again too.
	passEvery = time.Second
)

// Throttle refuses a share of the calls to an overloaded service. Make one with [New]: its zero
// value does not work. All its methods may be called from any number of goroutines. Allow and
// Record neither block nor allocate, and no goroutine or timer is ever started.
type Throttle struct {
	config  Config // with its defaults
	clock   clock.Clock
	tally   *tally.Calls
	passed  atomic.Int64   // when a call was last allowed that might have been refused
	refused error          // with which it refuses
	random  func() float64 // a number from 0 up to, but not, 1
	every   time.Duration  // after which one call is allowed that would be refused
	name    string
	series  sync.Once
	shown   *series
}

// New returns a throttle. The name stands in errors and metrics. New panics with the error of
// c.Validate if there is one.
func New(name string, c Config) *Throttle { return newAt(name, c, time.Now()) }

// newAt is New for a throttle that begins at t0.
func newAt(name string, c Config, t0 time.Time) *Throttle {
	if err := c.Validate(); err != nil {
		panic(err)
	}
	c = c.orDefault()
	width := (c.Window + buckets - 1) / buckets
	t := &Throttle{name: name, config: c, tally: tally.New(width, buckets, math.MaxInt64), refused: &refusal{name}}
	t.random, t.every = rand.Float64, passEvery
	t.clock.Epoch = t0
	return t
}

// Do calls fn unless the throttle refuses the call, records its result and returns what fn
// returns. If the call is refused, fn is not called and the error matches [ErrRefused]. If ctx is
// done already, Do returns its error and counts nothing.
//
// If fn panics or calls runtime.Goexit, the call counts as a failure, unless the caller has
// cancelled ctx, and the panic propagates. Do panics if fn is nil.
func Do[T any](ctx context.Context, t *Throttle, fn func(context.Context) (T, error)) (v T, err error) {
	if err = t.admit(ctx, fn == nil); err != nil {
		return v, err
	}
	returned, outcome := false, window.Ignored // until Classify has returned: it may panic
	defer func() { t.finish(ctx, returned, outcome) }()
	v, err = fn(ctx)
	returned = true
	outcome = verdict.On(ctx, err, t.config.Classify)
	return v, err
}

// Run is [Do] for a function that returns no value.
func (t *Throttle) Run(ctx context.Context, fn func(context.Context) error) error {
	if err := t.admit(ctx, fn == nil); err != nil {
		return err
	}
	returned, outcome := false, window.Ignored
	defer func() { t.finish(ctx, returned, outcome) }()
	err := fn(ctx)
	returned = true
	outcome = verdict.On(ctx, err, t.config.Classify)
	return err
}

// Allow returns a permit for one call, to be used up by Record or Done, or an error that matches
// [ErrRefused].
func (t *Throttle) Allow() (Permit, error) { return t.allow(t.clock.Now()) }

// RefusalRate returns the probability, in 0..1, with which a call is refused now.
func (t *Throttle) RefusalRate() float64 { return t.rate(t.clock.PeekNow()) }

// Totals returns the calls of the throttle's whole life.
func (t *Throttle) Totals() window.Totals { return window.Totals(t.tally.Totals()) }

func (t *Throttle) counts(at time.Duration) window.Counts {
	return window.Counts(t.tally.Window(at, &tally.Counts{}))
}

func (t *Throttle) admit(ctx context.Context, missing bool) error {
	if missing {
		panic("throttle: the function to call is nil")
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return t.decide(t.clock.Now())
}

func (t *Throttle) allow(at time.Duration) (Permit, error) {
	if err := t.decide(at); err != nil {
		return Permit{}, err
	}
	return Permit{throttle: t}, nil
}

// finish records the outcome of a call that may not have returned.
func (t *Throttle) finish(ctx context.Context, returned bool, o window.Outcome) {
	if !returned {
		o = verdict.Unreturned[window.Outcome](ctx)
	}
	t.record(t.clock.Now(), o)
}

// record counts an outcome. An outcome that is none of the three is ignored.
func (t *Throttle) record(at time.Duration, o window.Outcome) {
	t.tally.Record(at, tally.Outcome(min(o, window.Ignored)), 0)
}

// decide returns nil for a call that is allowed.
func (t *Throttle) decide(at time.Duration) error {
	p := t.rate(at)
	switch {
	case p == 0:
		return nil
	case t.random() >= p:
		t.note(int64(at))
		return nil
	case t.overdue(int64(at)):
		return nil
	}
	t.tally.Refuse(at)
	return t.refused
}

// rate is the formula.
func (t *Throttle) rate(at time.Duration) float64 {
	requests, accepts := t.requests(at)
	if requests < int64(t.config.MinCalls) {
		return 0
	}
	p := (float64(requests) - t.config.K*float64(accepts)) / float64(requests+1)
	return min(max(p, 0), t.config.MaxRefusal)
}

func (t *Throttle) requests(at time.Duration) (requests, accepts int64) {
	if !t.config.CountRefused {
		calls, _ := t.tally.Rates(at, &tally.Counts{})
		return calls.Calls, calls.Calls - calls.Failures
	}
	c := t.counts(at)
	return c.Calls() + c.Refused, c.Successes
}

// overdue reports whether no call has been allowed for t.every. It is true for one of several
// callers at once.
func (t *Throttle) overdue(at int64) bool {
	last := t.passed.Load()
	return at > last && at-last >= int64(t.every) && t.passed.CompareAndSwap(last, at)
}

// note keeps the time of the last call that was allowed.
func (t *Throttle) note(at int64) {
	for last := t.passed.Load(); at > last && !t.passed.CompareAndSwap(last, at); last = t.passed.Load() {
	}
}

// A gate records the outcomes of the calls that it has asked Allow for.
var _ = func() bool {
	gatehook.Throttle = gatehook.Throttles[Throttle, window.Outcome]{
		Record: func(t *Throttle, o window.Outcome) { t.record(t.clock.Now(), o) },
		Name:   func(t *Throttle) string { return t.name },
	}
	return true
}()
