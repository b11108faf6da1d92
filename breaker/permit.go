package breaker

import (
	"context"
	"sync/atomic"
	"time"
)

// Permit lets one call through, and takes its result. It belongs to the state in
// which it was given: a result that comes when the breaker has left that state
// changes nothing.
//
// Do not copy a permit after its first use. One that is forgotten harms nobody: a
// closed breaker misses one call, and a half-open one takes the probe's place back
// after Config.ProbeTimeout. The zero Permit is used up.
type Permit struct {
	breaker *Breaker
	phase   *phase
	trial   *phase // Trial: that of the shadow, if it let the call through
	start   time.Duration
	after   time.Duration // the wait that the service asked for
	flight  int64         // where it is counted while in flight
	place   int32         // HalfOpen: the place of the probe, and which loan of it
	turn    uint32
	booked  bool // by Run and its like, which use a permit alone
	active  bool // it is one of the breaker's active ones
	done    atomic.Bool
}

// Allow asks for one call to pass. It returns a permit, to be used up by Done or
// Report, or an [*OpenError]. It neither blocks nor allocates, but for a change
// callback that it may have to run.
func (b *Breaker) Allow() (m Permit, err error) {
	err = b.allow(&m, b.phase.Load(), unread)
	return
}

// AllowAt is Allow at the time t.
func (b *Breaker) AllowAt(t time.Time) (m Permit, err error) {
	err = b.AdmitAt(t, &m)
	return
}

// Admit is Allow into a zero permit that is there already, which spares copying one: for
// those who wrap a breaker.
func (b *Breaker) Admit(m *Permit) error { return b.allow(m, b.phase.Load(), unread) }

// AdmitAt is Admit at the time t.
func (b *Breaker) AdmitAt(t time.Time, m *Permit) error {
	return b.allow(m, b.phase.Load(), b.at(t))
}

// AdmitAfter lets a call through at a time that is given as what has passed since the
// time of NewAt, if the breaker is closed and watches no calls in flight. It reports
// whether it did; where it did not, nothing has been refused or counted, and AdmitAt
// decides.
func (b *Breaker) AdmitAfter(d time.Duration, m *Permit) bool {
	p := b.phase.Load()
	if !p.free() || p.timed && !b.reckons(d) {
		return false
	}
	m.breaker, m.phase, m.start = b, p, d
	return true
}

// Check returns the error with which Allow would refuse now, and nil if it would
// not. It takes nothing: who must get something else before the call, such as a
// limiter's token, asks here first. A refusal is counted.
func (b *Breaker) Check() error { return b.check(unread) }

// CheckAt is Check at the time t.
func (b *Breaker) CheckAt(t time.Time) error {
	if b.phase.Load().state == Closed {
		return nil
	}
	return b.check(b.at(t))
}

// Refuse refuses a call in the breaker's name, for a reason of yours: one that waited for
// something else when the breaker opened, say, and is not to be made though the breaker may
// have closed since. The refusal is counted as those of Allow are.
func (b *Breaker) Refuse(reason string) error {
	b = b.live()
	return b.refuse(&OpenError{
		Name: b.name, Key: b.hold.text(), State: Open, Reason: reason, Until: b.date(b.now()),
	})
}

// Done books the result of the call. It counts once: it returns whether it did. It does
// not for a permit that was used before, while the breaker is Disabled, or where the
// permit's state has ended since; such a late result is counted apart (Stats.Late). Any
// goroutine may call it.
func (m *Permit) Done(o Outcome) bool { return m.take() && m.breaker.settle(m, o, unread) }

// DoneAt is Done at the time t.
func (m *Permit) DoneAt(t time.Time, o Outcome) bool {
	return m.take() && m.breaker.settle(m, o, m.breaker.at(t))
}

// Report is Done with the verdict on a call that was made with ctx and returned
// err: see Breaker.Outcome. A wait that a failure's err asks for counts as if given
// to RetryAfter. Report before you cancel ctx yourself: under a cancelled context errors are
// ignored. For a call that may panic, defer Done(Failure) before it.
func (m *Permit) Report(ctx context.Context, err error) bool {
	return m.take() && m.book(m.outcome(ctx, err, true, m.phase.rules.config.Classify))
}

// Run makes the call: it calls fn, reports its result and returns its error, as
// Breaker.Run does. The permit must be in nobody else's hands meanwhile. Run panics if
// the permit is used up, or fn is nil.
func (m *Permit) Run(ctx context.Context, fn func(context.Context) error) error {
	switch {
	case fn == nil:
		panic("breaker: the function to call is nil")
	case m.breaker == nil || m.booked || m.done.Load():
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
		m.book(o)
	}()
	err = fn(ctx)
	returned = true
	return err
}

// RetryAfter says, before Done, that the service has asked not to be called for
// so long. A breaker that opens keeps to it, up to Config.MaxRetryAfter.
func (m *Permit) RetryAfter(d time.Duration) { m.after = max(d, 0) }

// take uses the permit up, and reports whether it was there to use.
func (m *Permit) take() bool {
	return m.breaker != nil && !m.booked && !m.done.Load() && m.done.CompareAndSwap(false, true)
}

// outcome returns what a call came to that was made with ctx and returned err, or did
// not return: then it panicked or ended its goroutine. A classifier that panics has said
// nothing, and goes on up.
func (m *Permit) outcome(ctx context.Context, err error, returned bool, classify func(error) Outcome) Outcome {
	if !returned {
		return unreturned(ctx)
	}
	judged := false
	defer func() {
		if !judged {
			m.book(Ignored)
		}
	}()
	var f findings
	o := f.verdict(ctx, err, classify)
	judged = true
	if o == Failure && m.after == 0 {
		m.after = max(f.after, 0)
	}
	return o
}

// book books the outcome of a permit that is in the hands of its user alone.
func (m *Permit) book(o Outcome) bool {
	m.booked = true
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
	case Trial:
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
		return b.checkNext(at)
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
	if p.state != Open || b.begun.Load() != moved {
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
	b.refused.Add()
	if b.hold != nil && b.phase.Load().state == evicted { // it was evicted meanwhile
		b.passRefusals()
	}
	return err
}
