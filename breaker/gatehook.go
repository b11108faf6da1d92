package breaker

import (
	"time"

	"github.com/weir-go/weir/internal/gatehook"
)

// What a gate alone needs of a breaker is reached through these functions.
var _ = func() bool {
	gatehook.Breaker = gatehook.Hooks[Breaker, Permit, Outcome]{
		Admit:      (*Breaker).admit,
		AdmitAfter: (*Breaker).admitAfter,
		AdmitAt:    (*Breaker).admitAt,
		CheckAt:    (*Breaker).checkAt,
		Refuse:     (*Breaker).refuseFor,
		AfterOpen:  (*Breaker).afterOpen,
		Tell:       func(m *Permit, f func(Outcome)) { m.tell = f },
		Attached:   (*Breaker).attached,
	}
	gatehook.Replay = gatehook.Replays[Breaker, State]{
		ForceAt:   (*Breaker).forceAt,
		ReleaseAt: (*Breaker).releaseAt,
		OpenForAt: (*Breaker).openForAt,
		ResetAt:   (*Breaker).resetAt,
	}
	return true
}()

// admit is Allow into a zero permit, which spares copying one.
func (b *Breaker) admit(m *Permit) error { return b.allow(m, b.phase.Load(), unread) }

// admitAfter fills in a zero permit at a time that is given as what has passed since the time of
// NewAt, if the breaker is closed and watches no calls in flight. It reports whether it did. If it
// did not, nothing is refused or counted, and admitAt decides.
func (b *Breaker) admitAfter(d time.Duration, m *Permit) bool {
	p := b.phase.Load()
	if !p.free() || p.timed && !b.clock.IsOffset(d) {
		return false
	}
	m.breaker, m.phase, m.start = b, p, d
	return true
}

// admitAt is admit at the time t.
func (b *Breaker) admitAt(t time.Time, m *Permit) error {
	return b.allow(m, b.phase.Load(), b.at(t))
}

// checkAt returns the error that AllowAt would return, and counts that refusal, or nil. It acquires
// nothing: a gate asks before it takes a token for a call that the breaker would refuse.
func (b *Breaker) checkAt(t time.Time) error {
	if b.phase.Load().state == Closed {
		return nil
	}
	return b.check(b.at(t))
}

// refuseFor refuses a call for the given reason, though the breaker may have closed since. The
// refusal is counted as those of Allow are.
func (b *Breaker) refuseFor(reason string) error {
	b = b.live()
	return b.refuse(&OpenError{
		Name: b.name, Key: b.hold.text(), State: Open, Reason: reason, Until: b.date(b.now()),
	})
}

// attached returns where a group of gates keeps the gate of a member's breaker.
func (b *Breaker) attached() gatehook.Place {
	if b.hold == nil || b.hold.group == nil {
		return nil
	}
	return &b.hold.gate
}
