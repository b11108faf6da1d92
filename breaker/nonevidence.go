package breaker

import (
	"sync"
	"time"
)

// isUninformative reports whether a failed call says nothing about the service, because its
// deadline d has passed. The deadline must have been too short, or have passed while the process
// was suspended.
func (m *Permit) isUninformative(d time.Time) bool {
	if m.phase.rules.config.CountDeadlines {
		return false
	}
	b := m.breaker
	p := b.phase.Load()
	sampler := b
	if p.shadow != nil {
		sampler = p.shadow
	}
	at, deadline := b.now(), b.clock.Peek(d)
	if at < deadline {
		return false
	}
	b.usual.needed.Store(int64(addClamped(at, usualEvery)))
	sampler.setSampling(true, at)
	short := b.usual.mayBeShort(m.startedBy(p, at), deadline, sampler.phase.Load().sample, at)
	if !short && !p.suspendedAt(deadline, at) || b.unanswered.addAndCheck(p, at, time.Duration(b.usual.known.Load())) {
		b.usual.counted.Store(int64(at))
		return false
	}
	return true
}

// If a result comes this long after the deadline of its call, the process was suspended.
const lateAfter = time.Second

// suspendedAt reports whether the process seems to have been suspended at the deadline of a call
// that ended at the given time: the call ended more than a second after the deadline, and no call
// ended in between.
func (p *phase) suspendedAt(deadline, at time.Duration) bool {
	if at-deadline <= lateAfter {
		return false
	}
	from, to := p.tally.Pause(at)
	return deadline+time.Second >= from && deadline <= to
}

// uninformativeCalls counts the calls that say nothing about the service. A success of the breaker
// restarts the count. The zero value is empty.
type uninformativeCalls struct {
	mu        sync.Mutex
	since     time.Duration
	calls     int64
	successes int64 // of the breaker before the first of these calls
}

// addAndCheck counts the call, and reports whether the call is evidence nevertheless. It is
// evidence if MinCalls such calls came before it without a success in between, and there was no
// success for the length of the window and twice the usual duration. A probe is never evidence
// nevertheless: if only callers with short deadlines make the probes, others may still be answered.
func (u *uninformativeCalls) addAndCheck(p *phase, at, usual time.Duration) bool {
	long := p.rules.config.Window
	if long == 0 { // LastCalls
		long = usualEvery
	}
	long = addClamped(long, 2*max(usual, 0))
	t := p.totals()
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.calls == 0 || u.successes != t.Successes || u.since < p.since {
		u.since, u.calls, u.successes = at, 0, t.Successes
	}
	u.calls++
	return u.calls > p.rules.minCalls && p.results != probeResults && at-u.since >= long
}

func (u *uninformativeCalls) restart() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.calls = 0
}
