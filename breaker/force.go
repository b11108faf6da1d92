package breaker

import (
	"fmt"
	"math"
	"time"

	"github.com/weir-go/weir/internal/tally"
	"github.com/weir-go/weir/window"
)

// Force puts an override over the breaker: ForcedOpen, ForcedClosed, Disabled or
// Shadow. The state underneath is kept, and its time goes on; Release returns to it.
// Another Force takes the place of the first. Force panics for a state that is no
// override.
func (b *Breaker) Force(s State) { b.forceAt(time.Now(), s) }

// forceAt is Force at the time t.
func (b *Breaker) forceAt(t time.Time, s State) {
	if !s.forced() {
		panic(fmt.Sprintf("breaker: %q is not an override", s))
	}
	b.change(t, func(b *Breaker, p *phase, at time.Duration) {
		if p.state != s {
			b.override(p, s, at)
		}
	})
}

// override enters an override. The lock is held.
func (b *Breaker) override(p *phase, s State, at time.Duration) {
	under := p
	if p.under != nil {
		under = p.under
	}
	next := p.next(stay{s, at, math.MaxInt64})
	next.under, next.reason = under, "forced"
	next.prepare(b)
	b.publish(next, Change{From: p.state, To: s, Reason: next.reason, origin: byHand})
}

// Release lifts an override. The breaker is then in the state in which it would be
// without it: an open one opens no later for it, and a half-open one begins its
// probes anew. A closed one judges what comes from now on. Without an override
// Release does nothing.
func (b *Breaker) Release() { b.releaseAt(time.Now()) }

// releaseAt is Release at the time t.
func (b *Breaker) releaseAt(t time.Time) {
	b.change(t, func(b *Breaker, p *phase, at time.Duration) {
		if p.under != nil {
			b.resume(p, p.under.at(at), at)
		}
	})
}

// resume leaves an override for the state underneath. The lock is held.
func (b *Breaker) resume(p *phase, s stay, at time.Duration) {
	if s.state == HalfOpen {
		s.until = math.MaxInt64 // until a probe goes out
	}
	next := p.next(stay{s.state, at, s.until})
	next.reason, next.tripped, next.rounds, next.cooldown = p.under.reason, p.under.tripped, p.under.rounds, p.under.cooldown
	next.prepare(b)
	b.publish(next, Change{From: p.state, To: s.state, Reason: "released", origin: byHand})
}

// OpenFor opens the breaker for the given time from now on, whatever its state;
// then it is half-open. Under an override it sets the state underneath. OpenFor(0)
// ends a cooldown at once. A negative time counts as 0.
func (b *Breaker) OpenFor(d time.Duration) { b.openForAt(time.Now(), d) }

// openForAt is OpenFor at the time t.
func (b *Breaker) openForAt(t time.Time, d time.Duration) {
	b.change(t, func(b *Breaker, p *phase, at time.Duration) {
		b.set(p, stay{Open, at, add(at, max(d, 0))}, "opened")
	})
}

// Reset closes the breaker and forgets what it was judged by: the window, the
// failed rounds of probes, the streak. Under an override it does so underneath.
// Totals go on.
func (b *Breaker) Reset() { b.resetAt(time.Now()) }

// resetAt is Reset at the time t.
func (b *Breaker) resetAt(t time.Time) {
	b.change(t, func(b *Breaker, p *phase, at time.Duration) {
		b.set(p, stay{Closed, at, math.MaxInt64}, "reset")
	})
}

// set enters a state by hand, or puts it under the override. The lock is held.
func (b *Breaker) set(p *phase, s stay, reason string) {
	from := p
	if p.under != nil {
		from = p.under
	}
	next := p.next(s)
	next.cooldown = next.rules.cooldown(from.rounds)
	next.reason, next.tripped, next.rounds = reason, window.Counts{}, from.rounds
	if p.under != nil {
		b.replaceUnder(p, next)
		return
	}
	next.prepare(b)
	if p.state == s.state { // the same again: begun anew, and no change
		next.entered = p.entered
		b.phase.Store(next)
		return
	}
	b.publish(next, Change{From: p.state, To: s.state, Reason: reason, origin: byHand})
}

// replaceUnder publishes the override anew, over another phase.
func (b *Breaker) replaceUnder(p, under *phase) {
	if under.state == Closed {
		under.rounds = 0
	}
	same := *p
	same.under = under
	b.phase.Store(&same)
}

// change runs f on the phase in force, under the lock, and then delivers what it
// posted. Of a breaker that was evicted, f gets the one that its key has now.
func (b *Breaker) change(t time.Time, f func(b *Breaker, p *phase, at time.Duration)) {
	if b.hold.shared() {
		return
	}
	at := b.at(t)
	b.mu.Lock()
	p := b.pay(at)
	if p.state == evicted {
		b.mu.Unlock()
		t = b.fresh(at)
		b.hold.group.get(t).change(t, f)
		return
	}
	f(b, p, p.latest(at))
	b.mu.Unlock()
	b.changes.deliver()
}

// Reconfigure gives the breaker another config, with c's defaults for what is zero,
// and keeps its state: an open one goes on recovering, calls in flight count, and a
// window of the same shape keeps its calls. A window of another shape begins empty;
// totals go on. A call in flight when SlowCall, Latency or HungCalls is switched on is not
// timed and not watched, since its beginning was not noted. Another HalfOpenTimeout runs from
// the next probe on. Initial belongs to New, and is not looked at. If c is not
// valid its error is returned and nothing has changed.
func (b *Breaker) Reconfigure(c Config) error { return b.reconfigureAt(time.Now(), c) }

// reconfigureAt is Reconfigure at the time t.
func (b *Breaker) reconfigureAt(t time.Time, c Config) error {
	if err := c.Validate(); err != nil {
		return err
	}
	r := b.hold.rulesFor(c.orDefault())
	b.change(t, func(b *Breaker, p *phase, _ time.Duration) { b.follow(r, p, t) })
	return nil
}

// follow gives the breaker other rules, and its shadow if it has one. The lock is held.
func (b *Breaker) follow(r *rules, p *phase, t time.Time) {
	now := b.at(t) // of which the shadow may know a later moment than the breaker, or not
	b.changes.tell.Store(&r.config.OnChange)
	b.reconfigure(p, r, p.latest(now))
	if p.shadow != nil {
		shadow := p.shadow.pay(now)
		p.shadow.reconfigure(shadow, shadowRules(r), shadow.latest(now))
	}
}

// reconfigure puts the phase under other rules. The lock is held.
func (b *Breaker) reconfigure(p *phase, r *rules, at time.Duration) {
	next := p.by(r, at)
	b.phase.Store(next)
	if next.state == HalfOpen {
		b.conclude(next, *next.live.probed.Load(), at)
	}
}

// by returns the same phase under other rules from the given offset on.
func (p *phase) by(r *rules, at time.Duration) *phase {
	next := *p
	next.obey(r)
	if !r.sameWindow(p.rules) {
		next.past = p.past.with(p.tally, at)
		next.tally = r.newTally()
		next.tally.SetStreak(p.tally.Streak())
		next.floor = tally.Counts{}
	}
	next.tally.SetSlow(r.config.SlowCall)
	if next.state == Closed && (next.tally != p.tally || r.config.HungCalls != p.rules.config.HungCalls || r.config.SlowCall != p.rules.config.SlowCall) {
		next.flights = newFlights(r)
	}
	another := r.config.HalfOpenTimeout != p.rules.config.HalfOpenTimeout
	if next.state == HalfOpen && another {
		next.until = math.MaxInt64 // it runs from the next probe on
	}
	if p.under != nil {
		under, s := *p.under, p.under.at(at) // what the clock has brought by the old rules stands
		under.obey(r)
		under.state, under.since, under.until = s.state, s.since, s.until
		if s.state == HalfOpen && another {
			under.until = math.MaxInt64
		}
		next.under = &under
	}
	return &next
}
