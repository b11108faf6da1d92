package breaker

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/internal/clock"
	"github.com/weir-go/weir/internal/verdict"
)

// Permit is the right to make one call. The result of the call is recorded with it. Right after
// Allow, defer a Record of a failure. This record counts only if nothing else was recorded, which
// happens after a panic or an early return. Call Done when the call has ended:
//
//	permit, err := b.Allow()
//	if err != nil {
//		return err
//	}
//	defer permit.Record(ctx, nil, breaker.Failure)
//	err = send(ctx)
//	permit.Done(ctx, err)
//
// Never write
//
//	defer permit.Done(ctx, err)
//
// because Go evaluates err at the defer statement, where it is still nil: every call would count as
// a success.
//
// A permit belongs to the state in which it was acquired: a result that is recorded after the
// breaker has left that state changes nothing. Do not copy a permit after its first use. Forgetting
// a permit is safe: a closed breaker misses one call, and a half-open breaker reuses the probe slot
// after Config.ProbeTimeout. The zero Permit is used up.
type Permit struct {
	breaker      *Breaker
	issuer       *regime
	shadowIssuer *regime // the phase of the shadow, if the shadow let the call through
	start        time.Duration
	retryAfter   time.Duration // the wait that the service asked for
	slot         int32         // HalfOpen: the slot of the probe
	// HalfOpen: the number of that use of the slot; Recovering: the number of the call
	slotUse      uint32
	number       int64 // in the sample, 0 if the call is not sampled
	cohortNumber uint8 // in the cohort, 0 if the call is not in it
	returned     bool  // the function of Run, Do or DoResult has returned
	spent        bool  // used up by Run or by a gate, which do not share the permit
	active       bool  // the call is counted in Breaker.active
	expired      bool  // the call failed at its deadline, which says nothing about the service
	used         atomic.Bool
}

// Allow returns a permit for one call, or an [*OpenError]. Use the permit up with Record or Done.
// Allow neither blocks nor allocates memory, except that it may call Config.OnChange.
func (b *Breaker) Allow() (m Permit, err error) {
	err = b.allow(&m, b.regime.Load(), unread)
	return
}

// Done records the outcome of a call that was made with ctx and returned err, and reports whether
// it counted. Config.Classify returns the outcome. If the call is a failure and err has a method
// RetryAfter, Done passes its result to SetRetryAfter. Call Done before you cancel ctx: errors
// under a cancelled context are ignored. Do not defer Done: see [Permit].
//
// The outcome does not count if the permit is used up, if the breaker is Disabled, or if the state
// in which the permit was acquired has ended. The metric weir.breaker.late_results counts results
// that come after their state has ended. Any goroutine may call Done or Record.
func (m *Permit) Done(ctx context.Context, err error) bool {
	if !m.markUsed() {
		return false
	}
	m.returned = true
	return m.finish(ctx, &err, m.issuer.rules.config.Classify)
}

// Record is like Done, but for a caller that has decided the outcome itself: Config.Classify is not
// asked, and a deadline that says nothing counts too. err, which may be nil, is used only for
// LastFailures. Record may be deferred: see [Permit].
func (m *Permit) Record(ctx context.Context, err error, o Outcome) bool {
	if !m.markUsed() {
		return false
	}
	return m.recordDescribed(ctx, err, o, unread, kindRecorded)
}

// Run calls fn, records the result and returns the error of fn, as Breaker.Run does. Do not call
// other methods of the permit until Run returns. Run panics if the permit is used up or fn is nil.
func (m *Permit) Run(ctx context.Context, fn func(context.Context) error) (err error) {
	if fn == nil {
		panic(nilFunctionText)
	}
	if m.breaker == nil || m.spent || m.used.Load() {
		panic("breaker: the permit is used up")
	}
	m.spent = true
	defer m.finish(ctx, &err, m.issuer.rules.config.Classify)
	err = fn(ctx)
	m.returned = true
	return err
}

// SetRetryAfter sets how long the service asked not to be called. Call it before Record or Done. A
// breaker that opens stays open at least that long, up to Config.MaxRetryAfter.
func (m *Permit) SetRetryAfter(d time.Duration) { m.retryAfter = max(d, 0) }

// finish records the outcome of a call that was made with ctx, and reports whether it counted. The
// call returned err, or it did not return because it panicked or called runtime.Goexit. If classify
// panics, the call is ignored.
func (m *Permit) finish(ctx context.Context, err *error, classify func(error) Outcome) (counted bool) {
	if !m.returned {
		return m.recordDescribed(ctx, nil, verdict.Unreturned[Outcome](ctx), unread, kindPanic)
	}
	if classify != nil || m.active && *err != nil { // a method of the error may panic
		return m.finishClassified(ctx, *err, classify)
	}
	if *err == nil {
		return m.breaker.record(ctx, m, Success, unread, nil)
	}
	return m.recordDescribed(ctx, *err, m.outcome(ctx, *err, nil), unread, kindResult)
}

// finishClassified is finish for a call that returned, and whose outcome classify returns, or a
// method of err if classify is nil. Both may panic.
func (m *Permit) finishClassified(ctx context.Context, err error, classify func(error) Outcome) (counted bool) {
	o := Ignored
	defer func() { counted = m.recordDescribed(ctx, err, o, unread, kindResult) }()
	o = m.outcome(ctx, err, classify)
	return
}

// outcome returns the outcome of a call that returned err, and sets retryAfter if it failed.
func (m *Permit) outcome(ctx context.Context, err error, classify func(error) Outcome) Outcome {
	var f verdict.Findings
	o := verdict.Find(&f, ctx, err, classify)
	o, _ = m.judgeAs(ctx, err, f.After, o)
	return o
}

// judgeAs returns the outcome of a call that returned err and was judged as o, and sets retryAfter
// if it failed: the service asks to wait for after. expired reports that the call
// failed at its deadline, and that the outcome is Ignored because the deadline was too short.
func (m *Permit) judgeAs(ctx context.Context, err error, after time.Duration, o Outcome) (_ Outcome, expired bool) {
	if !o.Failed() {
		return o, false
	}
	if err != nil && o == Failure {
		if deadline, ok := ctx.Deadline(); ok && m.isUninformative(deadline) {
			m.expired = true
			return Ignored, true
		}
	}
	if m.retryAfter == 0 {
		m.retryAfter = max(after, 0)
	}
	return o, false
}

// recordDescribed records the outcome of a call that returned err. kind is the kind of a failure
// without an error.
func (m *Permit) recordDescribed(ctx context.Context, err error, o Outcome, at time.Duration, kind string) bool {
	if o.Failed() {
		if at == unread {
			at = m.breaker.now()
		}
		if m.breaker.failures.Load().keeps(at) {
			return m.recordKept(ctx, err, o, at, kind)
		}
	}
	return m.breaker.record(ctx, m, o, at, nil)
}

// recordKept is recordDescribed for a failure that is to be kept. It describes the failure.
func (m *Permit) recordKept(ctx context.Context, err error, o Outcome, at time.Duration, kind string) bool {
	if m.active { // as recordActive does, but also if DescribeFailure calls Goexit
		m.active = false
		defer m.breaker.active.Add(-1)
	}
	var f failure
	f.describe(ctx, err, kind, &m.issuer.rules.config)
	return m.breaker.record(ctx, m, o, at, &f)
}

// markUsed marks the permit as used and reports whether it was unused.
func (m *Permit) markUsed() bool {
	return m.breaker != nil && !m.spent && !m.used.Load() && m.used.CompareAndSwap(false, true)
}

// allow fills in m, or returns the error of a refused call and leaves m zero.
func (b *Breaker) allow(m *Permit, p *regime, at time.Duration) error {
	if p.free { // nothing else is in this function, so that the compiler inlines it
		m.breaker, m.issuer = b, p
		return nil
	}
	return b.allowAt(m, p, at)
}

// refuseOpen returns the error of a call that an open breaker refuses, as allow would. Calling
// it before allow takes 14 % less time, because no Permit has to be cleared yet.
func (b *Breaker) refuseOpen(p *regime) error {
	if p.passes == noCalls && b.clock.StartsAtEpoch() {
		if at := time.Since(b.clock.Epoch); at < p.until() && at >= p.since-clock.ReadTolerance {
			return b.refuse(p.refusal)
		}
	}
	return nil
}

// allowAt does the work of allow if the result depends on the time.
func (b *Breaker) allowAt(m *Permit, p *regime, at time.Duration) error {
	if p.fast && !p.timed { // a closed breaker
		m.breaker, m.issuer = b, p
		if p.counted {
			m.count()
		}
		return nil
	}
	if at == unread {
		at = b.now()
		p = b.regime.Load()
	}
	if p.fast { // a closed breaker that times its calls
		m.breaker, m.issuer, m.start = b, p, at
		if p.counted {
			m.count()
		}
		return nil
	}
	switch p.passes {
	case noCalls:
		if at < p.until() {
			return b.refuse(p.refusal)
		}
		return b.allowProbe(m, at)
	case onlyProbes:
		return b.allowProbe(m, at)
	case shareOfCalls:
		return b.allowShare(m, at)
	case allCalls:
	}
	m.fill(b, p, at)
	if p.shadow != nil {
		p.askShadow(b, m, at)
	}
	return nil
}

// count counts the call in flight until record ends that.
func (m *Permit) count() {
	m.active = true
	m.breaker.active.Add(1)
}

// fill fills in the permit of a call that phase p lets through.
func (m *Permit) fill(b *Breaker, p *regime, at time.Duration) {
	m.breaker, m.issuer, m.start = b, p, at
	if p.counted {
		m.count()
	}
	if p.sample != nil {
		m.number, m.cohortNumber = p.sample.begun.Add(1), p.sample.cohort.begin(at)
	}
}

// check returns nil if a call would be let through now. If a call would be refused, check counts
// the refusal and returns its error. It acquires nothing: a gate calls it before it takes a token.
func (b *Breaker) check(at time.Duration) error {
	p := b.regime.Load()
	switch s := p.stayAt(at); {
	case s.state == Recovering:
		return b.checkShare(at)
	case s.state == HalfOpen && p.timedOut(at) && !b.tooEarlyToProbe(p, at): // no probe yet
		return nil
	case s.state == HalfOpen || p.timedOut(at):
		return b.checkProbes(at)
	case p.passes == noCalls:
		return b.refuse(p.refusal)
	}
	return nil
}

// refuse counts a refused call and returns err.
func (b *Breaker) refuse(err *OpenError) error {
	b.refused.Add(1)
	return err
}
