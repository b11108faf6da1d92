package breaker

import "time"

// restartIfNew is for a time that is earlier than seen.
func (b *Breaker) restartIfNew(at, tolerance time.Duration) {
	isNew := func() bool {
		p := b.phase.Load()
		return p.state != evicted && b.clock.IsNew(at, p.seen(), tolerance)
	}
	if !isNew() {
		return
	}
	b.mu.Lock()
	if isNew() {
		b.restart(at)
	}
	b.mu.Unlock()
	b.changes.deliver()
}

// restart makes the breaker begin as a new one, in the state Config.Initial, but an override and
// all totals stay. Calls that began under an override or while the breaker was closed still count,
// because they may have begun in the new clock. The lock is held.
func (b *Breaker) restart(at time.Duration) {
	p := b.phase.Load()
	b.usual.restart(at)
	b.unanswered.restart()
	initial := endlessStay(Closed, at)
	if p.rules.config.Initial == Open {
		initial = openStay(at, addClamped(at, p.rules.cooldown(0)))
	}
	begun := func(s stay) *phase {
		next := p.next(s)
		next.since = at // earlier than the latest time
		next.recovery = recovery{reason: "initial state", cooldown: p.rules.cooldown(0)}
		return next
	}
	next := begun(initial)
	if p.under != nil {
		next.epoch = 0
		under := next
		next = begun(endlessStay(p.state, at))
		next.under, next.replaced, next.reason = under, p.replaced, p.reason
	}
	p.tally.Restart(at)
	next.floor = p.tally.Totals()
	if next.state != p.state {
		next.complete(b)
		b.publish(next, Change{From: p.state, To: next.state, Reason: "the clock is another one", origin: byClock})
		return
	}
	next.epoch, next.entered = p.epoch, p.entered
	next.complete(b)
	b.phase.Store(next)
}

// restart forgets all durations.
func (u *usualDuration) restart(at time.Duration) {
	u.cohort.Store(nil)
	u.known.Store(0)
	u.knownAt.Store(int64(at))
	u.counted.Store(int64(at) - 1)
	u.needed.Store(int64(at))
}
