package throttle

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/internal/settings"

	"github.com/weir-go/weir/internal/clock"
	"github.com/weir-go/weir/internal/tally"
	"github.com/weir-go/weir/internal/verdict"
	"github.com/weir-go/weir/window"
)

const (
	// buckets is the number of parts of the window.
	buckets = 10
	// alwaysAllowEvery is the time after the last allowed call at which the next call is allowed
	// even if it would otherwise be refused.
	alwaysAllowEvery = time.Second
)

// Throttle refuses a share of the calls to an overloaded service. Make one with [New]: the zero
// value does not work. All methods may be called from any number of goroutines. Allow and Record
// neither block nor allocate memory. No goroutine or timer is started.
type Throttle struct {
	name       string
	setting    atomic.Pointer[setting]
	clock      clock.Clock
	allowedAt  atomic.Int64 // when a call was last allowed that could have been refused
	refusal    error
	random     func() float64 // from 0 up to, but not including, 1
	every      time.Duration  // alwaysAllowEvery, except in tests
	makeSeries sync.Once
	series     *series
	changing   sync.Mutex       // held while the Config or the window is replaced
	set        settings.Version // of K and MaxRefusal
}

// New returns a throttle. The name appears in errors and metrics. New panics with the error of
// c.Validate if there is one.
func New(name string, c Config) *Throttle { return newAt(name, c, time.Now()) }

// newAt is like New, but the throttle begins at t0.
func newAt(name string, c Config, t0 time.Time) *Throttle {
	if err := c.Validate(); err != nil {
		panic(err)
	}
	t := &Throttle{name: name, refusal: &refusalError{name}}
	t.setting.Store(newSetting(c.orDefault()))
	t.random, t.every = rand.Float64, alwaysAllowEvery
	t.clock.Epoch = t0
	return t
}

// Do calls fn unless the throttle refuses the call, records the result and returns what fn returns.
// If the call is refused, fn is not called and the error matches [ErrRefused]. If ctx is done
// already, Do returns the error of ctx and counts nothing.
//
// If fn panics or calls runtime.Goexit, the call counts as a failure, unless the caller has
// cancelled ctx, and the panic propagates. Do panics if fn is nil.
func Do[T any](ctx context.Context, t *Throttle, fn func(context.Context) (T, error)) (v T, err error) {
	mustNotBeNil(fn == nil)
	if err = t.begin(ctx); err != nil {
		return v, err
	}
	returned := false
	defer func() { t.finish(ctx, err, returned) }()
	v, err = fn(ctx)
	returned = true
	return v, err
}

// Run is [Do] for a function that returns only an error.
func (t *Throttle) Run(ctx context.Context, fn func(context.Context) error) error {
	mustNotBeNil(fn == nil)
	_, err := Do(ctx, t, func(ctx context.Context) (struct{}, error) { return struct{}{}, fn(ctx) })
	return err
}

// Allow returns a permit for one call, or an error that matches [ErrRefused]. Use the permit up
// with Record or Done.
func (t *Throttle) Allow() (Permit, error) { return t.allow(t.now()) }

// Totals returns all calls since the throttle was made.
func (t *Throttle) Totals() window.Totals { return window.Totals(t.setting.Load().totals()) }

func mustNotBeNil(isNil bool) {
	if isNil {
		panic("throttle: the function to call is nil")
	}
}

func (t *Throttle) begin(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return t.decide(t.now())
}

// finish records a call that was made with ctx and returned err, or did not return. If Classify
// panics, the call is ignored.
func (t *Throttle) finish(ctx context.Context, err error, returned bool) {
	o := window.Ignored
	defer func() { t.record(t.now(), o) }()
	if !returned {
		o = verdict.Unreturned[window.Outcome](ctx)
		return
	}
	o = verdict.On(ctx, err, t.setting.Load().config.Classify)
}

// record counts an outcome. An unknown outcome is ignored.
func (t *Throttle) record(at time.Duration, o window.Outcome) {
	if o == window.Overloaded {
		o = window.Failure
	}
	t.setting.Load().tally.Record(at, tally.Outcome(min(o, window.Ignored)), 0)
}

func (t *Throttle) allow(at time.Duration) (Permit, error) {
	if err := t.decide(at); err != nil {
		return Permit{}, err
	}
	return Permit{throttle: t}, nil
}

func (t *Throttle) now() time.Duration     { return t.inClock(t.clock.Now()) }
func (t *Throttle) peekNow() time.Duration { return t.inClock(t.clock.PeekNow()) }

// inClock returns an offset that was read from the clock. If the clock is a new one, it empties the
// window first: see clock.IsNew.
func (t *Throttle) inClock(at time.Duration) time.Duration {
	calls := t.setting.Load().tally
	if latest := calls.Latest(); at < latest-clock.ReadTolerance && t.clock.IsNew(at, latest, clock.ReadTolerance) {
		calls.Restart(at)
		t.allowedAt.Store(int64(at))
	}
	return at
}

// decide returns nil if a call is allowed, and otherwise counts and returns the refusal.
func (t *Throttle) decide(at time.Duration) error {
	s := t.setting.Load()
	p := s.refusalRate(at)
	switch {
	case p == 0:
		return nil
	case t.random() >= p:
		t.noteAllowed(int64(at))
		return nil
	case t.mustAllow(int64(at)):
		return nil
	}
	s.tally.Refuse(at)
	return t.refusal
}

// refusalRate computes the formula of the package comment.
func (s *setting) refusalRate(at time.Duration) float64 {
	requests, accepts := s.requests(at)
	if requests < int64(s.config.MinCalls) {
		return 0
	}
	p := (float64(requests) - s.config.K*float64(accepts)) / float64(requests+1)
	return min(max(p, 0), s.config.MaxRefusal)
}

func (s *setting) requests(at time.Duration) (requests, accepts int64) {
	if !s.config.CountRefused {
		calls, _ := s.tally.Rates(at, &tally.Counts{})
		return calls.Calls, calls.Calls - calls.Failures
	}
	c := s.counts(at)
	return c.Calls() + c.Refused, c.Successes
}

func (s *setting) counts(at time.Duration) window.Counts {
	return window.Counts(s.tally.Window(at, &tally.Counts{}))
}

// mustAllow reports whether no call that could have been refused was allowed for t.every. Of
// several callers at the same time only one gets true.
func (t *Throttle) mustAllow(at int64) bool {
	last := t.allowedAt.Load()
	return at > last && at-last >= int64(t.every) && t.allowedAt.CompareAndSwap(last, at)
}

// noteAllowed stores the time of an allowed call that could have been refused.
func (t *Throttle) noteAllowed(at int64) {
	for last := t.allowedAt.Load(); at > last && !t.allowedAt.CompareAndSwap(last, at); {
		last = t.allowedAt.Load()
	}
}
