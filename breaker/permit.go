package breaker

import (
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/internal/tally"
)

// Permit lets one call through, and takes its result. It belongs to the state in
// which it was given: a result that comes when the breaker has left that state
// changes nothing.
//
// Do not copy a permit after its first use. One that is forgotten harms nobody: a
// closed breaker misses one call, and a half-open one takes the probe's place back
// after Config.ProbeTimeout.
type Permit struct {
	breaker *Breaker
	phase   *phase
	start   time.Duration
	place   int32 // HalfOpen: the place of the probe, and which loan of it
	turn    uint32
	done    atomic.Bool
}

// Allow asks for one call to pass. It returns a permit, to be used up by Done, or
// an [*OpenError]. It neither blocks nor allocates, but for a change callback that
// it may have to run.
func (b *Breaker) Allow() (Permit, error) { return b.allow(unread) }

// AllowAt is Allow at the time t.
func (b *Breaker) AllowAt(t time.Time) (Permit, error) {
	if p := b.phase.Load(); p.state == Closed && !b.timed {
		return Permit{breaker: b, phase: p}, nil
	}
	return b.allow(t.Sub(b.epoch))
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
	return b.check(t.Sub(b.epoch))
}

// Done books the result of the call. It counts once: it returns whether it did,
// and false for a permit that was used before or whose state has ended since. Such
// a late result is counted apart (Stats.Late). Any goroutine may call it.
func (m *Permit) Done(o Outcome) bool { return m.doneAt(unread, o) }

// DoneAt is Done at the time t.
func (m *Permit) DoneAt(t time.Time, o Outcome) bool {
	if m.breaker == nil {
		return false
	}
	return m.doneAt(t.Sub(m.breaker.epoch), o)
}

func (m *Permit) doneAt(at time.Duration, o Outcome) bool {
	if m.breaker == nil || !m.done.CompareAndSwap(false, true) {
		return false
	}
	return m.breaker.settle(m, o, at)
}

// unread stands for a time that has not been read from the clock, since nobody
// may need it.
const unread time.Duration = -1 << 63

// read returns the offset, from the clock if need be.
func (b *Breaker) read(at time.Duration) time.Duration {
	if at == unread {
		return time.Since(b.epoch)
	}
	return at
}

func (b *Breaker) allow(at time.Duration) (Permit, error) {
	p := b.phase.Load()
	if p.state == Closed {
		if b.timed {
			at = b.read(at)
		}
		return Permit{breaker: b, phase: p, start: at}, nil
	}
	at = b.read(at)
	if p.state == Open && at < p.until {
		return Permit{}, b.refuse(p, at)
	}
	return b.probe(at)
}

func (b *Breaker) check(at time.Duration) error {
	p := b.phase.Load()
	if p.state == Closed {
		return nil
	}
	at = b.read(at)
	switch p.at(at) {
	case Open:
		return b.refuse(p, at)
	case HalfOpen:
		if p.state == HalfOpen && !b.vacant(at) {
			return b.refuse(p, at)
		}
	}
	return nil
}

// vacant reports whether a probe could go out.
func (b *Breaker) vacant(at time.Duration) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.phase.Load().state != HalfOpen || b.probes.find(at) >= 0
}

func (b *Breaker) refuse(p *phase, at time.Duration) error {
	b.tally.Refuse(at)
	return p.err
}

// settle books a result, and reports whether it counted.
func (b *Breaker) settle(m *Permit, o Outcome, at time.Duration) bool {
	at = b.read(at)
	p := m.phase
	if b.phase.Load() != p || p.state == HalfOpen && !b.probed(m, o, at) {
		b.late.Add(1)
		return false
	}
	if p.state == HalfOpen {
		return true
	}
	var took time.Duration
	if b.timed {
		took = at - m.start
	}
	b.tally.Record(at, verdict(o), took)
	if o == Success || o == Failure {
		b.judge(p, at)
	}
	return true
}

// judge opens the breaker if the calls of a closed phase call for it. Every call
// is judged, a success too: it may be the one that reaches MinCalls.
func (b *Breaker) judge(p *phase, at time.Duration) {
	calls := b.tally.Judged(at, p.judged)
	if calls.Low >= b.minCalls && b.failureRate.reached(calls.High, calls.Low) {
		b.trip(p, at, calls)
	}
}

// verdict returns the outcome as the tally knows it; what is none of the three is
// ignored.
func verdict(o Outcome) tally.Verdict { return tally.Verdict(min(o, Ignored)) }
