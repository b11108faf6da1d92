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

// Throttle refuses a share of the calls, as large as the service behind is
// overloaded: where a [Breaker] is a switch, a throttle is a valve. It is the
// client-side adaptive throttling of "Site Reliability Engineering" (O'Reilly,
// 2016), chapter 21, Handling Overload: of the calls in the window, each is refused
// with the probability
//
//	max(0, (requests − K·accepts) / (requests + 1))
//
// where accepts are the successes, and requests all calls with a verdict, or with
// those that it refused itself where [ThrottleConfig].CountRefused is set. It needs
// no state to recover: what was refused and what failed leaves the window.
//
// All its methods may be called from any number of goroutines; Allow and Record neither
// block nor allocate. No goroutine and no timer is ever started.
type Throttle struct {
	name   string
	config ThrottleConfig // with its defaults
	clock
	tally   *tally.Calls
	passed  atomic.Int64 // when a call last passed that might have been refused
	refused error        // with which it refuses
	series  sync.Once
	shown   *throttleSeries
}

// NewThrottle returns a throttle on the real clock. The name stands in errors and
// metrics. It panics with the error of c.Validate if there is one.
func NewThrottle(name string, c ThrottleConfig) *Throttle { return NewThrottleAt(name, c, time.Now()) }

// NewThrottleAt is NewThrottle for one that begins at t0, or with the first time given as
// [NewAt] says, and lives on the times given to the At verbs.
func NewThrottleAt(name string, c ThrottleConfig, t0 time.Time) *Throttle {
	if err := c.Validate(); err != nil {
		panic(err)
	}
	c = c.orDefault()
	width := (c.Window + time.Duration(c.Buckets) - 1) / time.Duration(c.Buckets)
	t := &Throttle{
		name: name, config: c, tally: tally.New(width, c.Buckets, math.MaxInt64), refused: &ThrottledError{Name: name},
	}
	t.epoch = t0
	return t
}

// Run calls fn unless the throttle refuses, books its result and returns its
// error; otherwise it returns a [*ThrottledError], and fn has not been called. Where
// ctx is done already it returns ctx's error and counts nothing.
//
// A panic of fn counts as a failure, unless the caller has cancelled ctx, and goes on up
// untouched; so does the end of its goroutine. Run panics if fn is nil.
func (t *Throttle) Run(ctx context.Context, fn func(context.Context) error) error {
	if err := t.admit(ctx, fn == nil); err != nil {
		return err
	}
	returned, outcome := false, Ignored // until Classify has spoken: it may panic, as fn may
	defer func() { t.finish(ctx, returned, outcome) }()
	err := fn(ctx)
	returned = true
	outcome = t.Outcome(ctx, err)
	return err
}

// DoThrottled is [Throttle.Run] for a function that returns a value.
func DoThrottled[T any](ctx context.Context, t *Throttle, fn func(context.Context) (T, error)) (v T, err error) {
	if err = t.admit(ctx, fn == nil); err != nil {
		return v, err
	}
	returned, outcome := false, Ignored
	defer func() { t.finish(ctx, returned, outcome) }()
	v, err = fn(ctx)
	returned = true
	outcome = t.Outcome(ctx, err)
	return v, err
}

// Allow returns a permit for one call, to be used up by Record or Done, or a [*ThrottledError].
func (t *Throttle) Allow() (ThrottlePermit, error) { return t.allow(t.now()) }

// AllowAt is Allow at the time u.
func (t *Throttle) AllowAt(u time.Time) (ThrottlePermit, error) { return t.allow(t.at(u)) }

// Outcome returns the verdict on a call that was made with ctx and returned err, as
// [Breaker.Outcome] does.
func (t *Throttle) Outcome(ctx context.Context, err error) Outcome {
	return verdictOn(ctx, err, t.config.Classify)
}

// Name returns the throttle's name.
func (t *Throttle) Name() string { return t.name }

// RefusalRate returns the probability, in 0..1, with which a call is refused now.
func (t *Throttle) RefusalRate() float64 { return t.rate(t.seenNow()) }

// RefusalRateAt is RefusalRate at the time u.
func (t *Throttle) RefusalRateAt(u time.Time) float64 { return t.rate(t.seen(u)) }

// Counts returns the calls in the window.
func (t *Throttle) Counts() window.Counts { return t.counts(t.seenNow()) }

// CountsAt is Counts as seen at the time u.
func (t *Throttle) CountsAt(u time.Time) window.Counts { return t.counts(t.seen(u)) }

// Totals returns the calls of the throttle's whole life.
func (t *Throttle) Totals() window.Totals { return window.Totals(t.tally.Totals()) }

func (t *Throttle) counts(at time.Duration) window.Counts {
	return window.Counts(t.tally.Window(at, tally.Counts{}))
}

func (t *Throttle) admit(ctx context.Context, missing bool) error {
	if missing {
		panic("breaker: the function to call is nil")
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return t.decide(t.now())
}

func (t *Throttle) allow(at time.Duration) (ThrottlePermit, error) {
	if err := t.decide(at); err != nil {
		return ThrottlePermit{}, err
	}
	return ThrottlePermit{throttle: t}, nil
}

// finish books what a call came to that may not have returned.
func (t *Throttle) finish(ctx context.Context, returned bool, o Outcome) {
	if !returned {
		o = unreturned(ctx)
	}
	t.book(o)
}

func (t *Throttle) book(o Outcome) { t.tally.Record(t.now(), verdict(o), 0) }

// decide returns nil for a call that may pass.
func (t *Throttle) decide(at time.Duration) error {
	p := t.rate(at)
	switch {
	case p == 0:
		return nil
	case t.config.Rand() >= p:
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
	if p <= 0 || p < t.config.MinRefusal {
		return 0
	}
	return min(p, t.config.MaxRefusal)
}

func (t *Throttle) requests(at time.Duration) (requests, accepts int64) {
	if !t.config.CountRefused {
		calls := t.tally.Judged(at, tally.Pair{})
		return calls.Low, calls.Low - calls.High
	}
	c := t.counts(at)
	return c.Calls() + c.Refused, c.Successes
}

// overdue reports whether no call has passed for PassEvery. Of several callers at
// once one hears so.
func (t *Throttle) overdue(at int64) bool {
	last := t.passed.Load()
	return at > last && at-last >= int64(t.config.PassEvery) && t.passed.CompareAndSwap(last, at)
}

// note keeps the time of the last call that passed.
func (t *Throttle) note(at int64) {
	for last := t.passed.Load(); at > last && !t.passed.CompareAndSwap(last, at); last = t.passed.Load() {
	}
}
