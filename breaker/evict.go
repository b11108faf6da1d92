package breaker

import (
	"time"

	"github.com/weir-go/weir/internal/clock"
	"github.com/weir-go/weir/internal/gatehook"
	"github.com/weir-go/weir/internal/tally"
	"github.com/weir-go/weir/window"
)

// lastCallsKept is how long an unused member is kept if its window is LastCalls and contains a
// failure. Such a window does not become empty with time.
const lastCallsKept = time.Hour

// timeToEmpty is the time after which the window of an unused member is empty.
func (r *rules) timeToEmpty() time.Duration {
	if r.config.LastCalls > 0 {
		return lastCallsKept
	}
	return r.config.Window
}

// evict makes b forward everything to its successor, if b counts as idle in its group. It reports
// whether it did.
//
// Results are recorded without a lock. So evict checks b again after it has stored the evicted
// phase, and record checks for that phase after it has counted the result: at least one of the two
// sees the other.
func (b *Breaker) evict(r *rules, t time.Time, unusedForLong bool) bool {
	if !b.mu.TryLock() {
		return false // it is in use
	}
	defer b.mu.Unlock()
	p := b.phase.Load()
	at := b.clock.Peek(t)
	if p.state == Closed && p.rules.config.Initial != Open && b.clock.IsNew(at, p.seen(), clock.ReadTolerance) {
		b.restart(at) // changes no state, so there is nothing to deliver
		p = b.phase.Load()
	}
	at = p.latest(at)
	if !b.isIdle(p, r, at, unusedForLong) {
		return false
	}
	next := p.evictedPhase(b, at)
	b.phase.Store(next)
	if b.callsCounted(p) != next.live.seen || !b.isIdle(p, r, at, unusedForLong) {
		b.phase.Store(p)
		return false
	}
	b.updatePlace(next)
	b.forgetFailures()
	return true
}

// evictAnyState is like evict, but evicts a breaker in any state. It leaves the delivery of the
// changes to its caller.
func (b *Breaker) evictAnyState(t time.Time) {
	b.mu.Lock()
	at := b.clock.At(t)
	p := b.advance(at)
	next := p.evictedPhase(b, p.latest(at))
	b.phase.Store(next)
	b.updatePlace(next)
	b.forgetFailures()
	b.mu.Unlock()
}

// isIdle reports whether this breaker in phase p decides as a new breaker with the rules would.
// Consecutive failures and runs of failures that are older than the window do not matter. The lock
// is held.
func (b *Breaker) isIdle(p *phase, r *rules, at time.Duration, unusedForLong bool) bool {
	// Group.Reconfigure may have changed Initial
	asNew := p.isUnchanged(at) && p.state == r.config.Initial
	if p.rules != r || !asNew && (p.state != Closed || r.config.Initial.isOverride()) {
		return false
	}
	if b.active.Load() > 0 || b.changes.isBusy() || p.isBusy(at) || b.hasBusyGate() {
		return false
	}
	if p.shadow != nil {
		if s := p.shadow.phase.Load(); s.state != Closed || s.isBusy(at) {
			return false
		}
	}
	c := window.Counts(p.tally.Window(at, &p.floor))
	if r.config.LastCalls > 0 {
		return unusedForLong || c.Failures == 0 && c.Slow == 0
	}
	return c.Calls() == 0
}

// isBusy reports whether the service asked to wait, or calls are in flight that may hang.
func (p *phase) isBusy(at time.Duration) bool {
	return time.Duration(p.live.retryAt.Load()) > at || p.flights.anyMayHang(at)
}

// hasBusyGate reports whether the breaker has a gate whose calls hold slots in flight. A new gate
// for the same key would not count these calls.
func (b *Breaker) hasBusyGate() bool {
	if b.member == nil {
		return false
	}
	gate := b.member.gate.Load()
	return gate != nil && gatehook.IsBusy(gate)
}

// isUnchanged reports whether the breaker is still in its first state and no call waits for the end
// of its cooldown.
func (p *phase) isUnchanged(at time.Duration) bool {
	return p.epoch == 0 && (p.under == nil || p.under.epoch == 0) && (p.state != Open || p.timedOut(at))
}

// evictedPhase returns the phase of a breaker that is evicted in phase p. It keeps what was counted
// so far.
func (p *phase) evictedPhase(b *Breaker, at time.Duration) *phase {
	next := *p
	var last stay
	last, next.spent, next.entered = p.history(at)
	*next.spent.of(last.state) += max(at-last.since, 0)
	next.stay, next.epoch = endlessStay(evicted, at), p.epoch+1
	next.timing = timing{}
	next.derive(b)
	next.live = &mutableState{seen: b.callsCounted(p)}
	next.past = endedWindows{counts: p.totals()}
	next.past.counts.Refused = int64(b.refused.Load())
	if p.hasLatency() {
		sum := b.lifetimeLatency(p)
		next.past.latency = &sum
	}
	next.tally, next.under, next.flights, next.shadow, next.incidents = noCallsTally, p, nil, nil, nil
	return &next
}

// noCallsTally is the window of all evicted breakers. It is never written to.
var noCallsTally = tally.NewLast(1, 0)
