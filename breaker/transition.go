package breaker

import (
	"context"
	"time"

	"github.com/weir-go/weir/internal/tally"
	"github.com/weir-go/weir/window"
)

// cause is the reason of a transition.
type cause struct {
	reason string
	origin string
	// how many fewer failures or slow calls would not have opened the breaker
	margin string
	byRun  bool            // a run of failures is the cause
	spare  time.Duration   // after a run: for how long calls may be refused after a failed probe
	ctx    context.Context // of the call that is the cause, if that is known
}

// enter begins another state. The lock is held, and advance was called.
func (b *Breaker) enter(s stay, why cause, counts window.Counts) *phase {
	p := b.phase.Load()
	next := p.next(s)
	next.complete(b)
	b.publish(next, Change{From: p.state, To: s.state, Reason: why.reason, origin: why.origin, Counts: counts})
	return next
}

// publish makes p the current phase and queues the change for OnChange. The lock is held.
func (b *Breaker) publish(p *phase, c Change) {
	p.incidents = p.incidents.afterTransition(&c, b.phase.Load(), p.since, b.date)
	b.phase.Store(p)
	b.updatePlace(p)
	if b.observed != nil {
		b.observed.reportOpening(b, p.since, c)
		return
	}
	c.Name, c.Key, c.At = b.name, b.member.text(), b.date(p.since)
	b.changes.push(c)
}

// advance makes the transitions that were due by the given time, each at the time it was due, and
// returns the phase in effect. The lock is held.
func (b *Breaker) advance(at time.Duration) *phase {
	p := b.phase.Load()
	if !p.timedOut(at) {
		return p
	}
	for _, s := range p.followingStays(at) {
		p = b.enter(s, cause{reason: p.timeoutReason(), origin: byClock}, window.Counts{})
	}
	return p
}

// trip opens the breaker because of the calls of a closed phase, unless another call did so first
// or MaxOpen members of its group are open.
func (b *Breaker) trip(p *phase, at time.Duration, why cause, calls tally.Pair) {
	b.mu.Lock()
	now := b.phase.Load()
	if now.epoch != p.epoch {
		b.mu.Unlock()
		return
	}
	b.changes.cause = why.ctx
	// More calls may have been counted since: report those that were judged.
	c := p.counts(at)
	c.Successes, c.Failures = calls.Calls-calls.Failures, calls.Failures
	c.Slow = min(c.Slow, calls.Calls)
	c.SlowFailures = min(c.SlowFailures, c.Slow, c.Failures)
	if b.takePlace() {
		b.open(now, at, why, c)
	} else {
		b.stayClosed(now, at, why, c)
	}
	b.changes.cause = nil
	b.mu.Unlock()
	b.changes.deliver()
}

// open opens the breaker for a cooldown, or longer if the service asked for that. The lock is held.
func (b *Breaker) open(p *phase, at time.Duration, why cause, counts window.Counts) {
	at = p.latest(at)
	rounds := p.rounds
	if p.state == HalfOpen || p.state == Recovering {
		rounds++
	}
	wait := p.rules.cooldown(rounds)
	next := p.next(openStay(at, max(addClamped(at, wait), p.askedUntil(at, hashTime(b.date(at))))))
	details := b.newDetails(why.margin)
	next.recovery = recovery{
		reason: why.reason, details: details, openedBy: counts, rounds: rounds, cooldown: wait,
		byRun: why.byRun, spare: why.spare, refused: int64(b.refused.Load()),
	}
	if p.state != Closed && p.byRun {
		next.byRun, next.spare = true, p.spare
		next.spareUntil = addClamped(at, p.spare)
	}
	next.complete(b)
	c := Change{From: p.state, To: Open, Reason: why.reason, origin: why.origin, Counts: counts}
	c.Margin, c.LastFailures = details.margin, details.failures
	b.publish(next, c)
}
