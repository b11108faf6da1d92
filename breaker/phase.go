package breaker

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/internal/tally"
	"github.com/weir-go/weir/window"
)

// phase is one stay in a state. It is made whole before it is published by one
// store of a pointer, so nothing of it is ever half seen; and as a permit holds
// the phase that let it through, a result that comes from an earlier one is known.
// A phase never changes, but for what is atomic in it.
type phase struct {
	state State
	needs
	rules *rules
	tally *tally.Calls
	past  past          // of windows that Reconfigure has ended: a part of the totals
	epoch uint64        // permits of the same epoch count; a new config keeps it
	since time.Duration // when it began
	until time.Duration // Open: when it is over; HalfOpen: when it gives up, once a probe went out

	floor   tally.Counts  // the totals when it began: what came before does not count
	began   tally.Counts  // the breaker's totals then
	refused int64         // how many the breaker had refused then
	tripped window.Counts // Open: the counts that opened it
	reason  string        // Open and HalfOpen: what opened the breaker
	err     *OpenError    // with which it refuses

	rounds   int           // rounds of probes that failed since it was closed
	cooldown time.Duration // Open: as drawn
	under    *phase        // of an override: the phase to which it returns
	flights  *flights      // Closed: calls in flight, if they are watched
	shadow   *Breaker      // Shadow: what a breaker that may refuse would do

	live    *live                   // what changes while the phase lasts
	spent   perState[time.Duration] // in each state, up to this phase
	entered perState[int64]         // transitions into each state, this one included
}

// live is what changes while a phase lasts. Phases of one epoch share it.
type live struct {
	retry  atomic.Int64                  // until when the service asked not to be called
	probed atomic.Pointer[window.Counts] // HalfOpen: the results so far
	full   atomic.Pointer[OpenError]     // HalfOpen: with which it refuses while all places are lent
	seen   int64                         // evicted: calls that the eviction has seen, or that were passed on; guarded by the breaker's lock
}

// stay is a stretch of time in a state.
type stay struct {
	state State
	since time.Duration
	until time.Duration
}

// at returns the state at the given offset: an open phase is half-open as soon as
// its time is over, and a half-open one that gave up is open again, whether anybody
// calls or not.
func (p *phase) at(now time.Duration) stay {
	if !p.over(now) {
		return stay{p.state, p.since, p.until}
	}
	due := p.due(now)
	return due[len(due)-1]
}

// over reports whether the clock has ended the phase.
func (p *phase) over(now time.Duration) bool { return now >= p.until && p.until != math.MaxInt64 }

// due returns the stays that the clock has brought since the phase was over, one or
// two of them, the last of which holds now.
func (p *phase) due(now time.Duration) []stay {
	if p.state == Open {
		return []stay{{HalfOpen, p.until, math.MaxInt64}}
	}
	again := p.again()
	if now < again.until || again.until == math.MaxInt64 {
		return []stay{again}
	}
	return []stay{again, {HalfOpen, again.until, math.MaxInt64}}
}

// history returns the stay that holds at the given offset, the time spent in each state before
// it, and the transitions into each state up to it.
func (p *phase) history(at time.Duration) (now stay, spent perState[time.Duration], entered perState[int64]) {
	now, spent, entered = stay{p.state, p.since, p.until}, p.spent, p.entered
	if p.over(at) { // the clock has brought other states, and nobody has called since
		for _, s := range p.due(at) {
			*spent.of(now.state) += s.since - now.since
			*entered.of(s.state)++
			now = s
		}
	}
	return now, spent, entered
}

// again is the stay that follows a half-open phase without a verdict.
func (p *phase) again() stay {
	return stay{Open, p.until, max(add(p.until, p.cooldown), time.Duration(p.live.retry.Load()))}
}

// enter replaces the present phase, whose breaker's lock is held, by a new one, and
// posts the change. What the present one owed to the clock must have been paid.
func (b *Breaker) enter(s stay, why cause, counts window.Counts) *phase {
	old := b.phase.Load()
	next := old.next(s)
	next.prepare(b)
	b.publish(next, Change{From: old.state, To: s.state, Reason: why.reason, origin: why.origin, Counts: counts})
	return next
}

// next returns the phase that follows the old one, not yet published.
func (p *phase) next(s stay) *phase {
	s.since = p.latest(s.since)
	next := &phase{
		state: s.state, tally: p.tally, past: p.past, epoch: p.epoch + 1,
		since: s.since, until: s.until, rounds: p.rounds, cooldown: p.cooldown,
		reason: p.reason, tripped: p.tripped, spent: p.spent, entered: p.entered,
		floor: p.tally.Totals(), began: p.totals(),
	}
	next.obey(p.rules)
	*next.spent.of(p.state) += s.since - p.since
	*next.entered.of(s.state)++
	return next
}

// obey gives the phase its rules, before it is published.
func (p *phase) obey(r *rules) { p.rules, p.needs = r, r.needs }

// latest returns the offset, or the newest moment that the phase knows of: a stale
// time moves no deadline.
func (p *phase) latest(at time.Duration) time.Duration {
	return max(at, p.since, p.tally.NewestBucket())
}

// hasTimed reports whether calls were timed, now or before a Reconfigure.
func (p *phase) hasTimed() bool {
	return p.rules.config.Latency || p.past.times != nil || len(p.past.recent) > 0
}

// totals returns the calls of the breaker's whole life.
func (p *phase) totals() tally.Counts {
	now := p.tally.Totals()
	sum := now.Plus(p.past.totals())
	sum.ConsecutiveFailures = now.ConsecutiveFailures
	return sum
}

// prepare makes what belongs to the phase's state.
func (p *phase) prepare(b *Breaker) {
	p.live, p.refused = &live{}, int64(b.refused.Load())
	p.live.probed.Store(&window.Counts{})
	p.live.retry.Store(math.MinInt64)
	refusal := OpenError{Name: b.name, Key: b.hold.text(), State: p.state, Reason: p.reason, cooldown: p.rules.config.Cooldown}
	switch p.state {
	case Closed:
		p.rounds = 0
		p.flights = newFlights(p.rules)
	case Open:
		refusal.Until = b.date(p.until)
	case HalfOpen:
		b.probes.reset(p.rules.config.Probes)
	case Shadow:
		p.shadow = b.newShadow(p)
	default: // the other overrides need nothing
	}
	p.err = &refusal
}

// publish puts the phase into force and posts the change that it is.
func (b *Breaker) publish(p *phase, c Change) {
	b.phase.Store(p)
	if b.observed != nil {
		b.observed.wouldOpen(b, p.since, c)
		return
	}
	c.Name, c.Key, c.At = b.name, b.hold.text(), b.date(p.since)
	b.changes.post(c)
}

// pay makes the changes that the present phase owes to the clock, as of the moments
// at which they were due, and returns the phase then in force. The lock is held.
func (b *Breaker) pay(at time.Duration) *phase {
	p := b.phase.Load()
	if !p.over(at) {
		return p
	}
	for _, s := range p.due(at) {
		p = b.enter(s, cause{p.reason, byClock}, window.Counts{})
	}
	return p
}

// trip opens the breaker on what the calls of a closed phase have come to, unless
// another call did so first.
func (b *Breaker) trip(p *phase, at time.Duration, why cause, calls tally.Pair) {
	b.mu.Lock()
	now := b.phase.Load()
	if now.epoch != p.epoch {
		b.mu.Unlock()
		return
	}
	counts := p.judgedBy(at, calls)
	p = now // another config may have come meanwhile
	b.open(p, at, why, counts)
	b.mu.Unlock()
	b.changes.deliver()
}

// counts returns what the phase is judged by.
func (p *phase) counts(at time.Duration) window.Counts {
	c := window.Counts(p.tally.Window(at, &p.floor))
	c.ConsecutiveFailures = p.failures(p.tally.Streak())
	return c
}

// judgedBy is counts with the very calls that gave the verdict: others may have come
// since.
func (p *phase) judgedBy(at time.Duration, calls tally.Pair) window.Counts {
	c := p.counts(at)
	c.Successes, c.Failures = calls.Calls-calls.Failures, calls.Failures
	c.Slow = min(c.Slow, calls.Calls)
	c.SlowFailures = min(c.SlowFailures, c.Slow, c.Failures)
	return c
}

// open opens the breaker for a cooldown, or as long as the service asked for. The
// lock is held.
func (b *Breaker) open(p *phase, at time.Duration, why cause, counts window.Counts) {
	at = p.latest(at)
	rounds := p.rounds
	if p.state == HalfOpen {
		rounds++
	}
	wait := p.rules.cooldown(rounds)
	next := p.next(stay{Open, at, max(add(at, wait), time.Duration(p.live.retry.Load()))})
	next.rounds, next.cooldown, next.reason, next.tripped = rounds, wait, why.reason, counts
	next.prepare(b)
	b.publish(next, Change{From: p.state, To: Open, Reason: why.reason, origin: why.origin, Counts: counts})
}

// add is a + d without overflow, for d ≥ 0.
func add(a, d time.Duration) time.Duration {
	if s := a + d; s >= a {
		return s
	}
	return math.MaxInt64
}
