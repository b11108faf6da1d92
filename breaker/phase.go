package breaker

import (
	"fmt"
	"math"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/internal/tally"
	"github.com/weir-go/weir/window"
)

// phase is one stay in a state. It is made whole before it is published by one
// store of a pointer, so nothing of it is ever half seen; and as a permit holds
// the phase that let it through, a result that comes from an earlier one is known
// by the pointer. But for what is atomic, a phase never changes.
type phase struct {
	state State
	seq   uint64        // the number of transitions up to it
	since time.Duration // when it began
	until time.Duration // Open: when it is over

	floor   tally.Counts  // the totals when it began: what came before does not count
	judged  tally.Pair    // of floor
	tripped window.Counts // Open: the counts that opened it
	err     *OpenError    // with which it refuses
	reason  string        // Open and HalfOpen: what opened the breaker

	probed atomic.Pointer[window.Counts] // HalfOpen: the results so far

	spent   [states]time.Duration // in each state, up to this phase
	entered [states]int64         // transitions into each state, this one included
}

// at returns the state at the given offset: an open phase is half-open as soon as
// its time is over, whether anybody calls or not.
func (p *phase) at(now time.Duration) State {
	if p.state == Open && now >= p.until {
		return HalfOpen
	}
	return p.state
}

// enter replaces the present phase, whose breaker's lock is held, by a new one
// that begins at the given offset, and posts the change. What an open phase still
// owed to the clock, its turning half-open, must have been paid before.
func (b *Breaker) enter(to State, at time.Duration, reason string, counts window.Counts) *phase {
	old := b.phase.Load()
	at = max(at, old.since, b.tally.Newest()) // a stale time moves no deadline
	next := &phase{
		state: to, seq: old.seq + 1, since: at, until: math.MaxInt64, reason: reason,
		floor: b.tally.Totals(), tripped: counts, spent: old.spent, entered: old.entered,
	}
	next.judged = next.floor.Judged()
	next.spent[old.state] += at - old.since
	next.entered[to]++
	next.probed.Store(&window.Counts{})
	switch to {
	case Open:
		next.until = add(at, b.config.Cooldown)
		next.err = &OpenError{Name: b.name, State: Open, Reason: reason, Until: b.epoch.Add(next.until)}
	case HalfOpen:
		b.probes.reset(b.config.Probes)
		until := b.epoch.Add(add(at, b.config.ProbeTimeout))
		next.err = &OpenError{Name: b.name, State: HalfOpen, Reason: reason, Until: until}
	}
	b.phase.Store(next)
	b.changes.post(Change{
		Seq: next.seq, At: b.epoch.Add(at), From: old.state, To: to, Reason: reason, Counts: counts,
	})
	return next
}

// trip opens the breaker on what the calls of a closed phase have come to, unless
// another call did so first.
func (b *Breaker) trip(p *phase, at time.Duration, calls tally.Pair) {
	b.mu.Lock()
	if b.phase.Load() != p {
		b.mu.Unlock()
		return
	}
	counts := window.Counts(b.tally.Window(at, p.floor))
	counts.Successes, counts.Failures = calls.Low-calls.High, calls.High
	b.enter(Open, at, b.rateReason(counts), counts)
	b.mu.Unlock()
	b.changes.deliver()
}

// due turns an open phase whose time is over half-open, as of the moment at which
// it was, and returns the phase now in force. The lock is held.
func (b *Breaker) due(at time.Duration) *phase {
	p := b.phase.Load()
	if p.state == Open && at >= p.until {
		return b.enter(HalfOpen, p.until, p.reason, window.Counts{})
	}
	return p
}

func (b *Breaker) rateReason(c window.Counts) string {
	return fmt.Sprintf("failure rate %.3g%% of %d calls, limit %.3g%%",
		100*c.FailureRate(), c.Calls(), 100*b.config.FailureRate)
}

// add is a + d without overflow, for d ≥ 0.
func add(a, d time.Duration) time.Duration {
	if s := a + d; s >= a {
		return s
	}
	return math.MaxInt64
}
