package breaker

import (
	"time"

	"github.com/weir-go/weir/internal/gatehook"
)

// A gate uses these functions of a breaker, which are not part of the API.
var _ = func() bool {
	gatehook.Breaker = gatehook.Hooks[Breaker, Permit, Outcome]{
		Admit:       (*Breaker).admit,
		AdmitAfter:  (*Breaker).admitAfter,
		AdmitAt:     (*Breaker).admitAt,
		CheckAt:     (*Breaker).checkAt,
		Refuse:      (*Breaker).refuseFor,
		AfterOpen:   (*Breaker).afterOpen,
		AdmitClosed: (*Breaker).admitClosed,
		Tell: func(m *Permit, l gatehook.Listener[Outcome], start time.Duration) {
			m.listener, m.listenStart = l, start
		},
		Told: func(m *Permit) (gatehook.Listener[Outcome], time.Duration) { return m.listener, m.listenStart },
		Live: (*Breaker).forCalls,
		Find: func(group, key any) *Breaker {
			return group.(interface{ findAny(key any) *Breaker }).findAny(key)
		},
		Reconfigure: (*Breaker).setConfig,
		Attached:    (*Breaker).gatePlace,
		Stretch:     (*Breaker).stretchOfWait,
	}
	gatehook.Replay = gatehook.Replays[Breaker, State]{
		ForceAt:   (*Breaker).forceAt,
		ReleaseAt: (*Breaker).releaseAt,
		OpenForAt: (*Breaker).openForAt,
		ResetAt:   (*Breaker).resetAt,
	}
	return true
}()

// admit is like Allow, but fills in a zero permit of the caller instead of returning a copy.
func (b *Breaker) admit(m *Permit) error { return b.allow(m, b.phase.Load(), unread) }

// admitAfter fills in a zero permit if the breaker is closed and counts no calls in flight, and
// reports whether it did. d is the time since t0 of NewAt. If admitAfter reports false, nothing was
// refused or counted, and admitAt decides.
func (b *Breaker) admitAfter(d time.Duration, m *Permit) bool {
	p := b.phase.Load()
	if !p.fast || p.timed && !b.clock.IsOffset(d) {
		return false
	}
	m.breaker, m.phase, m.start = b, p, d
	return true
}

// admitClosed is like admitAfter, but reads the clock itself if the breaker needs the time. It also
// sets the listener.
func (b *Breaker) admitClosed(m *Permit, l gatehook.Listener[Outcome]) bool {
	p := b.phase.Load()
	if !p.fast {
		return false
	}
	if p.timed {
		m.start = b.now()
	}
	m.breaker, m.phase, m.listener = b, p, l
	return true
}

// admitAt is admit at the time t.
func (b *Breaker) admitAt(t time.Time, m *Permit) error {
	at := b.justNow(t)
	return b.allow(m, b.phase.Load(), at)
}

// checkAt returns nil if AllowAt would let a call through. If AllowAt would refuse the call,
// checkAt counts the refusal and returns its error. It acquires nothing.
func (b *Breaker) checkAt(t time.Time) error {
	if b.phase.Load().state == Closed {
		return nil
	}
	return b.check(b.justNow(t))
}

// refuseFor refuses a call for the given reason, even if the breaker has closed since, and counts
// the refusal.
func (b *Breaker) refuseFor(reason string) error {
	b = b.forCalls()
	return b.refuse(&OpenError{
		Name: b.name, Key: b.member.text(), State: Open, Reason: reason, Until: b.date(b.now()),
	})
}

// gatePlace returns where a group of gates keeps the gate of a member, or nil for a breaker that is
// not in a group.
func (b *Breaker) gatePlace() gatehook.Place {
	if b.member == nil || b.member.group == nil {
		return nil
	}
	return &b.member.gate
}
