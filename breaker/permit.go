package breaker

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/internal/verdict"
)

// Permit is the right to make one call, and takes its result. Record a failure in a defer right
// after Allow: it counts only if nothing else was recorded, so after a panic or an early return.
// Then call Done when the call has ended:
//
//	permit, err := b.Allow()
//	if err != nil {
//		return err
//	}
//	defer permit.Record(breaker.Failure)
//	err = send(ctx)
//	permit.Done(ctx, err)
//
// Never write
//
//	defer permit.Done(ctx, err)
//
// since Go evaluates err at the defer statement, where it is still nil: every call would be a
// success.
//
// A permit belongs to the state of the breaker in which it was acquired: a result that is recorded
// after the breaker has left that state changes nothing. Do not copy a permit after its first use.
// Forgetting a permit is safe: a closed breaker misses one call, and a half-open breaker reclaims
// the probe slot after Config.ProbeTimeout. The zero Permit is used up.
type Permit struct {
	breaker  *Breaker
	phase    *phase
	shadow   *phase // of the shadow, if it let the call through
	start    time.Duration
	after    time.Duration // the wait that the service asked for
	tell     func(Outcome) // called once with what is recorded; nil for none
	flight   int64         // where it is counted while in flight
	place    int32         // HalfOpen: the place of the probe, and which loan of it
	turn     uint32
	recorded bool // by Run and its like, which use a permit alone
	active   bool // it is one of the breaker's active ones
	done     atomic.Bool
}

// Allow returns a permit for one call, to be used up by Record or Done, or an [*OpenError]. It
// neither blocks nor allocates, except that it may have to run Config.OnChange.
func (b *Breaker) Allow() (m Permit, err error) {
	err = b.allow(&m, b.phase.Load(), unread)
	return
}

// AllowAt is Allow at the time t.
func (b *Breaker) AllowAt(t time.Time) (m Permit, err error) {
	err = b.allow(&m, b.phase.Load(), b.at(t))
	return
}

// Record records the outcome of the call and reports whether it counted. It does not count if the
// permit is used up, if the breaker is Disabled, or if the state in which the permit was acquired
// has ended; the metric weir.breaker.late_results counts those. Any goroutine may call it.
func (m *Permit) Record(o Outcome) bool { return m.take() && m.breaker.settle(m, o, unread) }

// RecordAt is Record at the time t.
func (m *Permit) RecordAt(t time.Time, o Outcome) bool {
	return m.take() && m.breaker.settle(m, o, m.breaker.at(t))
}

// Done records the outcome of a call that was made with ctx and has returned err, as
// [Breaker.Outcome] classifies it, and reports whether it counted, as Record does. If err is a
// failure and has a method RetryAfter, Done passes its result to SetRetryAfter. Call Done before
// you cancel ctx yourself: under a cancelled context errors are ignored. Do not defer Done: see
// [Permit].
func (m *Permit) Done(ctx context.Context, err error) bool {
	return m.take() && m.record(m.outcome(ctx, err, true, m.phase.rules.config.Classify))
}

// Run calls fn, records its result and returns its error, as Breaker.Run does. No other method of
// the permit may be called meanwhile. Run panics if the permit is used up, or fn is nil.
func (m *Permit) Run(ctx context.Context, fn func(context.Context) error) error {
	switch {
	case fn == nil:
		panic("breaker: the function to call is nil")
	case m.breaker == nil || m.recorded || m.done.Load():
		panic("breaker: the permit is used up")
	}
	return m.run(ctx, fn)
}

// run is the end of Do for a function without a value. What both say in their defer would be
// one more call at the end of each if it were a function.
func (m *Permit) run(ctx context.Context, fn func(context.Context) error) (err error) {
	returned := false
	defer func() {
		o := Success
		if !returned || err != nil || m.phase.classified {
			o = m.outcome(ctx, err, returned, m.phase.rules.config.Classify)
		}
		m.record(o)
	}()
	err = fn(ctx)
	returned = true
	return err
}

// SetRetryAfter sets how long the service has asked not to be called. Call it before Record or
// Done. A breaker that opens stays open at least that long, up to Config.MaxRetryAfter.
func (m *Permit) SetRetryAfter(d time.Duration) { m.after = max(d, 0) }

// take uses the permit up, and reports whether it was there to use.
func (m *Permit) take() bool {
	return m.breaker != nil && !m.recorded && !m.done.Load() && m.done.CompareAndSwap(false, true)
}

// outcome returns what a call came to that was made with ctx and returned err, or did
// not return: then it panicked or ended its goroutine. A classifier that panics has said
// nothing, and goes on up.
func (m *Permit) outcome(ctx context.Context, err error, returned bool, classify func(error) Outcome) Outcome {
	if !returned {
		return verdict.Unreturned[Outcome](ctx)
	}
	judged := false
	defer func() {
		if !judged {
			m.record(Ignored)
		}
	}()
	var f verdict.Findings
	o := verdict.Find(&f, ctx, err, classify)
	judged = true
	if o == Failure && m.after == 0 {
		m.after = max(f.After, 0)
	}
	return o
}

// record is Record for a permit that no other goroutine uses.
func (m *Permit) record(o Outcome) bool {
	m.recorded = true
	return m.breaker.settle(m, o, unread)
}

// free reports whether calls pass without being asked about: whether the phase is closed
// and watches none in flight.
func (p *phase) free() bool { return p.state == Closed && !p.watched }

// start returns the time at which a call of a free phase begins, if that matters.
func (b *Breaker) start(p *phase) (at time.Duration) {
	if p.timed {
		at = b.now()
	}
	return at
}

// allow fills in the permit, which is zero and stays so where it refuses.
func (b *Breaker) allow(m *Permit, p *phase, at time.Duration) error {
	if p.free() {
		m.breaker, m.phase = b, p
		if p.timed {
			m.start = b.read(at)
		}
		return nil
	}
	return b.allowTimed(m, p, b.read(at))
}

// allowTimed is allow for all cases in which the time matters.
func (b *Breaker) allowTimed(m *Permit, p *phase, at time.Duration) error {
	switch p.state {
	case Closed:
		if p.flights != nil && b.hung(p, at) {
			return b.allowTimed(m, b.phase.Load(), at)
		}
	case Open:
		if at < p.until {
			return b.refuse(b.openError(p))
		}
		return b.probe(m, at)
	case HalfOpen:
		return b.probe(m, at)
	case ForcedOpen:
		return b.refuse(p.err)
	case Shadow:
		m.give(b, p, at)
		p.try(b, m, at)
		return nil
	case evicted:
		next, at := b.again(at)
		return next.allow(m, next.phase.Load(), at)
	case ForcedClosed, Disabled:
	}
	m.give(b, p, at)
	return nil
}

// give fills in a permit of the phase.
func (m *Permit) give(b *Breaker, p *phase, at time.Duration) {
	m.breaker, m.phase, m.start, m.flight = b, p, at, p.flights.start(at)
	if p.rules.config.Active {
		m.active = true
		b.active.Add(1)
	}
}

func (b *Breaker) check(at time.Duration) error {
	p := b.phase.Load()
	if p.state == Closed {
		return nil
	}
	at = b.read(at)
	if p.state == evicted {
		next := b.current()
		return next.check(next.at(b.fresh(at)))
	}
	switch s := p.at(at); {
	case s.state == HalfOpen && p.over(at): // just due: all places are free
		return nil
	case s.state == HalfOpen || p.over(at):
		return b.checkProbes(at)
	case s.state == Open || s.state == ForcedOpen:
		return b.refuse(b.openError(p))
	}
	return nil
}

// openError returns the error with which the phase refuses. A breaker that is open at first made
// it before the first time was given, which may have moved the origin.
func (b *Breaker) openError(p *phase) *OpenError {
	if p.state != Open || !b.clock.Moved() {
		return p.err
	}
	until := b.date(p.until)
	if p.err.Until.Equal(until) {
		return p.err
	}
	e := *p.err
	e.Until = until
	return &e
}

func (b *Breaker) refuse(err *OpenError) error {
	b.refused.Add(1)
	if b.hold != nil && b.phase.Load().state == evicted { // it was evicted meanwhile
		if _, missed := b.missed(); missed {
			return b.live().refuse(err)
		}
	}
	return err
}
