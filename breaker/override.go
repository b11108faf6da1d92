package breaker

import (
	"fmt"
	"math"
	"time"

	"github.com/weir-go/weir/internal/settings"
)

// Force sets an override: ForcedOpen, ForcedClosed, Disabled or Shadow. It replaces an override
// that is set. The breaker keeps the state underneath, whose cooldown runs on. Release returns to
// that state. Force panics if s is not an override. While Config.Refuse is set, the breaker stays
// forced open, and s takes effect when Refuse ends.
func (b *Breaker) Force(s State) { b.forceAt(time.Now(), s) }

// forceAt is Force at the time t.
func (b *Breaker) forceAt(t time.Time, s State) {
	if !s.isOverride() {
		panic(fmt.Sprintf("breaker: %q is not an override", s))
	}
	b.setOverride(t, s, forcedReason)
}

// forcedReason is the reason of a breaker that is forced by hand.
const forcedReason = "forced"

// setOverride sets the override of the breaker itself, or lifts it if s is "". Refused callers are
// not told the reason of the change. It returns the number of the override.
func (b *Breaker) setOverride(t time.Time, s State, reason string) (number uint64) {
	b.changeUnderLock(t, func(b *Breaker, p *phase, at time.Duration) {
		b.overrideSet = settings.NextVersion()
		number = b.overrideSet
		b.changeOverride(p, s, at, reason)
	})
	return number
}

// coverOverride is setOverride for the override of a group, which lies over that of the breaker. It
// leaves the delivery of the changes to its caller.
func (b *Breaker) coverOverride(t time.Time, s State, reason string) *changeQueue {
	return b.queueChange(t, func(b *Breaker, p *phase, at time.Duration) { b.changeOverride(p, s, at, reason) })
}

// changeOverride begins the override s, or ends the one in effect if s is "". The lock is held.
func (b *Breaker) changeOverride(p *phase, s State, at time.Duration, reason string) {
	switch {
	case p.refuses():
		b.replaceOverride(p, s)
	case s != "" && p.state != s:
		b.override(p, s, at, reason)
	case s == "" && p.under != nil:
		b.resume(p, p.under.stayAt(at), at, reason)
	}
}

// override begins an override. The lock is held.
func (b *Breaker) override(p *phase, s State, at time.Duration, reason string) {
	under := p
	if p.under != nil {
		under = p.under
	}
	next := p.next(endlessStay(s, at))
	next.under, next.reason = under, forcedReason
	next.complete(b)
	b.publish(next, Change{From: p.state, To: s, Reason: reason, origin: byHand})
}

// Release lifts the override. The breaker is then in the state that it would be in without the
// override: the override does not lengthen the cooldown of an open breaker. A half-open breaker
// starts its probes again, and a recovering one begins with the smallest share. A closed breaker
// judges only calls after Release. Without an override Release does nothing.
func (b *Breaker) Release() { b.releaseAt(time.Now()) }

// releaseAt is Release at the time t.
func (b *Breaker) releaseAt(t time.Time) { b.setOverride(t, "", "released") }

// resume ends an override and begins the state underneath. The lock is held.
func (b *Breaker) resume(p *phase, s stay, at time.Duration, reason string) {
	switch s.state {
	case HalfOpen:
		s.until = math.MaxInt64 // HalfOpenTimeout begins with the first probe
	case Recovering:
		s.state = p.rules.afterProbes() // Reconfigure may have switched Recovery off
	default:
	}
	next := p.next(stay{s.state, at, s.until, s.wait})
	next.recovery = p.under.recovery
	next.complete(b)
	b.publish(next, Change{From: p.state, To: s.state, Reason: reason, origin: byHand})
}

// OpenFor opens the breaker for d from now on, whatever its state is. After that it is half-open.
// Under an override OpenFor sets the state underneath. OpenFor(0) ends a cooldown now. A negative d
// counts as 0.
func (b *Breaker) OpenFor(d time.Duration) { b.openForAt(time.Now(), d) }

// openForAt is OpenFor at the time t.
func (b *Breaker) openForAt(t time.Time, d time.Duration) {
	b.changeUnderLock(t, func(b *Breaker, p *phase, at time.Duration) {
		b.setStay(p, openStay(at, addClamped(at, max(d, 0))), "opened")
	})
}

// Reset closes the breaker and clears what it is judged by: the window, the consecutive failures
// and the failed rounds of probes. Under an override Reset does this to the state underneath.
// Totals are kept.
func (b *Breaker) Reset() { b.resetAt(time.Now()) }

// resetAt is Reset at the time t.
func (b *Breaker) resetAt(t time.Time) { b.resetFor(t, "reset") }

// resetFor is resetAt with the reason of the change.
func (b *Breaker) resetFor(t time.Time, reason string) {
	b.changeUnderLock(t, func(b *Breaker, p *phase, at time.Duration) {
		b.setStay(p, endlessStay(Closed, at), reason)
	})
}

// setStay enters a state, or makes it the state underneath the override. The lock is held.
func (b *Breaker) setStay(p *phase, s stay, reason string) {
	from := p
	if p.under != nil {
		from = p.under
	}
	next := p.next(s)
	next.recovery = recovery{reason: reason, rounds: from.rounds, cooldown: next.rules.cooldown(from.rounds)}
	if p.under != nil {
		if next.state == Closed {
			next.rounds = 0
		}
		same := *p
		same.under = next
		b.phase.Store(&same)
		return
	}
	next.complete(b)
	if p.state == s.state { // the state starts again, but that is not a transition
		next.entered = p.entered
		b.phase.Store(next)
		return
	}
	b.publish(next, Change{From: p.state, To: s.state, Reason: reason, origin: byHand})
}

// changeUnderLock calls f with the phase in effect, under the lock, and delivers the changes.
func (b *Breaker) changeUnderLock(t time.Time, f func(b *Breaker, p *phase, at time.Duration)) {
	b.queueChange(t, f).deliver()
}

// queueChange is changeUnderLock, but leaves the delivery of the changes to its caller.
func (b *Breaker) queueChange(t time.Time, f func(b *Breaker, p *phase, at time.Duration)) *changeQueue {
	if b.member.isUnguarded() {
		return b.changes
	}
	at := b.justNow(t)
	b.mu.Lock()
	p := b.advance(at)
	f(b, p, p.latest(at))
	b.mu.Unlock()
	return b.changes
}

// While Config.Refuse is set, the phase is an override in the state ForcedOpen. Like any override
// it keeps the phase underneath. It also keeps the override that it has replaced.

// refuses reports whether the phase refuses all calls because of Config.Refuse.
func (p *phase) refuses() bool { return p.rules.config.Refuse != "" }

// refuseAfter makes p the phase that replaces another phase and refuses all calls. p is not yet
// complete.
func (p *phase) refuseAfter(other *phase) {
	p.state, p.until, p.reason = ForcedOpen, math.MaxInt64, p.rules.config.Refuse
	p.under, p.replaced = other, ""
	if other.under != nil {
		p.under, p.replaced = other.under, other.state
	}
}

// followRefuse begins or ends the refusal of all calls after the rules have changed. The lock is
// held.
func (b *Breaker) followRefuse(old *rules, at time.Duration) {
	p := b.phase.Load()
	before, now := old.config.Refuse, p.rules.config.Refuse
	switch {
	case before == now:
	case before != "" && now != "":
		b.keepForcedOpen(p, p.replaced, now)
	case before == "" && p.state == ForcedOpen:
		b.keepForcedOpen(p, ForcedOpen, now)
	case before == "":
		next := p.next(endlessStay(ForcedOpen, at))
		next.refuseAfter(p)
		next.complete(b)
		b.publish(next, Change{From: p.state, To: ForcedOpen, Reason: now, origin: byHand})
	case p.replaced == ForcedOpen:
		b.keepForcedOpen(p, "", forcedReason)
	case p.replaced != "":
		b.override(p, p.replaced, at, "Refuse is empty")
	default:
		b.resume(p, p.under.stayAt(at), at, "Refuse is empty")
	}
}

// keepForcedOpen changes why a breaker is forced open, and the override that follows. The lock is
// held.
func (b *Breaker) keepForcedOpen(p *phase, replaced State, reason string) {
	next := *p
	next.replaced, next.reason = replaced, reason
	next.refusal = next.newRefusal(b)
	b.phase.Store(&next)
}

// replaceOverride sets the override that follows when Config.Refuse ends, "" for none. The lock is
// held.
func (b *Breaker) replaceOverride(p *phase, s State) {
	next := *p
	next.replaced = s
	b.phase.Store(&next)
}

// stateWithoutRefuse returns the state of the breaker, or the one that follows when Config.Refuse
// ends.
func (b *Breaker) stateWithoutRefuse() State {
	p := b.phase.Load()
	switch {
	case !p.refuses():
		return b.State()
	case p.replaced != "":
		return p.replaced
	}
	return p.under.state
}

// overrideWithoutRefuse returns the override of the breaker, or the one that follows when
// Config.Refuse ends, "" for none.
func (b *Breaker) overrideWithoutRefuse() State {
	if s := b.stateWithoutRefuse(); s.isOverride() {
		return s
	}
	return ""
}
