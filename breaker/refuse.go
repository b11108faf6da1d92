package breaker

import (
	"math"
	"time"
)

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
	p := b.forReads().phase.Load()
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
