package breaker

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/weir-go/weir/internal/tally"
	"github.com/weir-go/weir/window"
)

// allowProbe lets a call pass as a probe if there is a free slot.
func (b *Breaker) allowProbe(m *Permit, at time.Duration) error {
	b.mu.Lock()
	p := b.advance(at)
	slot, use := -1, uint32(0)
	if p.state == HalfOpen && !b.tooEarlyToProbe(p, at) {
		slot, use = b.occupySlot(p, at)
	}
	refusal := b.probeRefusal(p, slot, at)
	b.mu.Unlock()
	b.deliver()
	if refusal != nil {
		return b.refuse(refusal)
	}
	if p.state != HalfOpen { // the state has changed since the caller loaded the phase
		return b.allow(m, b.regime.Load(), at)
	}
	m.fill(b, p, at)
	m.slot, m.slotUse = int32(slot), use
	return nil
}

// checkProbes does the work of check for a breaker that is half-open, or was until HalfOpenTimeout.
func (b *Breaker) checkProbes(at time.Duration) error {
	b.mu.Lock()
	p := b.advance(at)
	slot := -1
	if !b.tooEarlyToProbe(p, at) {
		slot = b.rareParts().slots.findFree(at, p.rules.config.Probes)
	}
	refusal := b.probeRefusal(p, slot, at)
	b.mu.Unlock()
	b.deliver()
	if refusal != nil {
		return b.refuse(refusal)
	}
	return nil
}

// probeRefusal returns the error of a refused call, or nil if the call may pass. slot is the free
// slot that the call found, or -1. The lock is held.
func (b *Breaker) probeRefusal(p *regime, slot int, at time.Duration) *OpenError {
	switch {
	case p.passes == noCalls:
		return p.refusal
	case p.state != HalfOpen || slot >= 0:
		return nil
	case b.tooEarlyToProbe(p, at):
		return p.refusal
	}
	next := b.rareParts().slots.nextFree(at, p.rules.config.Probes)
	began := b.date(next - p.rules.config.ProbeTimeout)
	if next >= p.until() { // HalfOpenTimeout ends first
		next = p.reopenedUntil()
	}
	until := b.date(next)
	if e := p.full.Load(); e != nil && e.Until.Equal(until) {
		return e
	}
	e := p.newRefusal(b)
	e.Until, e.cooldown, e.began, e.spread = until, 0, began, &p.spread
	p.full.Store(e)
	return e
}

// occupySlot occupies a slot, or returns -1 if none is free. The lock is held.
func (b *Breaker) occupySlot(p *regime, at time.Duration) (slot int, use uint32) {
	slot = b.rareParts().slots.findFree(at, p.rules.config.Probes)
	if slot < 0 {
		return slot, 0
	}
	use, abandoned := b.rareParts().slots.occupy(slot, addClamped(p.latest(at), p.rules.config.ProbeTimeout))
	if abandoned {
		b.rareParts().abandoned.Add(1)
	}
	if timeout := p.rules.config.HalfOpenTimeout; timeout > 0 && p.until() == math.MaxInt64 {
		// the first probe starts the timeout
		p.ends.Store(int64(addClamped(p.latest(at), timeout)))
	}
	return slot, use
}

// recordLocked records the result of a call of a half-open or recovering breaker, whose results are
// judged under the lock. It does nothing and reports false if the phase of the call has ended.
func (b *Breaker) recordLocked(ctx context.Context, m *Permit, o Outcome, at time.Duration, f *failure) bool {
	b.mu.Lock()
	p := b.advance(at)
	counts := p.generation == m.issuer.generation
	if counts {
		b.changes().cause = ctx
		took := at - m.start
		p.tally.Record(at, tally.Outcome(o), took)
		if o == Failure && f.isKept() {
			b.keepFailure(p, m, at, f)
		}
		if m.retryAfter > 0 {
			p.askRetry(at, m.retryAfter)
		}
		if p.results == rampResults {
			b.addRamped(m, p, o, took, at)
		} else {
			b.addProbe(m, p, o, took > p.rules.config.SlowCall, at)
		}
		b.changes().cause = nil
	}
	b.mu.Unlock()
	b.deliver()
	if counts && m.issuer.traced && o <= Failure {
		b.keepExemplar(ctx, m, at)
	}
	return counts
}

// addProbe adds the result of a probe, and ends the phase if there are enough results. The lock is
// held.
func (b *Breaker) addProbe(m *Permit, p *regime, o Outcome, slow bool, at time.Duration) {
	if o != Success && o != Failure {
		b.rareParts().slots.leaveSlot(m.slot, m.slotUse, slotFree)
		return
	}
	b.rareParts().slots.leaveSlot(m.slot, m.slotUse, slotUsed)
	c := withResult(*p.probed.Load(), o, slow)
	p.probed.Store(&c)
	b.decideByProbes(p, c, at)
}

// decideByProbes closes or opens a half-open breaker if there are enough results of probes. The
// lock is held.
func (b *Breaker) decideByProbes(p *regime, c window.Counts, at time.Duration) {
	r := p.rules
	need := min(int64(r.config.MinCalls), int64(r.config.Probes))
	if p.byRun && c.Successes == 0 {
		need = 1
	}
	pending := int64(0)
	if r.runs {
		pending = b.rareParts().slots.inFlight(at)
	}
	failed, decided := r.decide(c, pending, need)
	switch {
	case r.failureRate == neverReached && c.Failures > 0:
		b.open(p, at, cause{reason: "a probe failed", origin: byCalls}, c)
	case !decided:
	case !failed:
		why := cause{reason: fmt.Sprintf("%d of %d probes succeeded", c.Successes, c.Calls()), origin: byCalls}
		b.enter(endlessStay(r.afterProbes(), at), why, c)
	case r.failureRate.reached(c.Failures, c.Calls()):
		b.open(p, at, cause{reason: r.failureReason(c.Failures, c.Calls()) + ", of probes", origin: byCalls}, c)
	default:
		b.open(p, at, cause{reason: r.slowReason(c.Slow, c.Calls()) + ", of probes", origin: byCalls}, c)
	}
}

// decide reports whether the results of calls that began together reach a rate, or cannot reach it
// any more, however the pending calls among them end. At least need results decide. If FailureRate
// is off, half of the calls may not fail.
func (r *rules) decide(c window.Counts, pending, need int64) (failed, decided bool) {
	failureRate, all := r.failureRate, c.Calls()+pending
	if failureRate == neverReached {
		failureRate = wholeRate / 2
	}
	failed = failureRate.reached(c.Failures, all) || r.slowRate.reached(c.Slow, all)
	canFail := failureRate.reached(c.Failures+pending, all) || r.slowRate.reached(c.Slow+pending, all)
	return failed, c.Calls() >= need && failed == canFail
}

// probeSlots are the slots of a half-open phase. Breaker.mu guards them.
//
// A probe occupies a slot until its result is recorded or its time is over. The slot of a success
// or a failure stays used for the rest of the phase, so that no more probes are made than the
// decision needs. An ignored probe releases its slot.
//
// After Reconfigure there may be more slots than Config.Probes, since probes in flight keep their
// slots.
type probeSlots []probeSlot

type probeSlot struct {
	state slotState
	use   uint32        // the number of this use: a permit of an earlier use does not match
	until time.Duration // when an occupied slot falls free
}

type slotState uint8

const (
	slotFree slotState = iota
	slotOccupied
	slotUsed
)

// reset frees all slots. The numbers of their uses continue, so that no permit of an earlier phase
// matches.
func (ps *probeSlots) reset(n int) {
	if len(*ps) != n {
		*ps = make(probeSlots, n)
	}
	for i := range *ps {
		(*ps)[i].state = slotFree
	}
}

// findFree returns a slot for a probe at the given time, or -1 if limit slots are in use.
func (ps *probeSlots) findFree(at time.Duration, limit int) int {
	inUse, free := 0, -1
	for i := range *ps {
		switch s := &(*ps)[i]; {
		case s.state == slotUsed || s.state == slotOccupied && at < s.until:
			inUse++
		case free < 0:
			free = i
		}
	}
	if inUse >= limit {
		return -1
	}
	if free < 0 { // Config.Probes has grown
		*ps = append(*ps, probeSlot{})
		free = len(*ps) - 1
	}
	return free
}

// occupy occupies slot i until the given time. It returns the number of the use, and reports
// whether another probe left the slot without a result.
func (ps probeSlots) occupy(i int, until time.Duration) (use uint32, abandoned bool) {
	s := &ps[i]
	abandoned = s.state == slotOccupied
	s.use++
	s.state, s.until = slotOccupied, until
	return s.use, abandoned
}

// leaveSlot sets the state of slot i after its probe, unless another probe occupies the slot by
// now.
func (ps probeSlots) leaveSlot(i int32, use uint32, state slotState) {
	if s := &ps[i]; s.state == slotOccupied && s.use == use {
		s.state = state
	}
}

// inFlight returns the number of occupied slots.
func (ps probeSlots) inFlight(at time.Duration) (n int64) {
	for _, s := range ps {
		if s.state == slotOccupied && at < s.until {
			n++
		}
	}
	return n
}

// nextFree returns when fewer than limit slots are in use. That is when the first occupied slot
// falls free or, if more than limit slots are in use, when the last one does.
func (ps probeSlots) nextFree(at time.Duration, limit int) time.Duration {
	first, last, inUse := time.Duration(math.MaxInt64), time.Duration(math.MinInt64), 0
	for _, s := range ps {
		switch {
		case s.state == slotUsed:
			inUse++
		case s.state == slotOccupied && s.until > at:
			inUse++
			first, last = min(first, s.until), max(last, s.until)
		}
	}
	if inUse > limit && last > first {
		return last
	}
	return first
}

// allowShare lets a call of a recovering breaker pass if it belongs to the share that passes. If
// all calls pass and none of their rounds failed for Recovery, it closes the breaker.
func (b *Breaker) allowShare(m *Permit, at time.Duration) error {
	b.mu.Lock()
	p := b.advance(at)
	passes := false
	if p.state == Recovering {
		r, c := p.ramp, &p.rules.config
		switch {
		case r.oneOf == 1 && at-r.failedAt >= c.Recovery:
			why := fmt.Sprintf("all calls pass and no round of them failed for %v", c.Recovery)
			p = b.enter(endlessStay(Closed, at), cause{reason: why, origin: byCalls}, p.counts(at))
		case r.isOverdue(at, c.ProbeTimeout): // a missing result is no failure
			r.grow()
		}
		if passes = r.passes(at); passes {
			m.slotUse = r.pass(at)
		} else {
			r.skipped++
		}
	}
	b.mu.Unlock()
	b.deliver()
	switch {
	case p.state != Recovering: // the state has changed since the caller loaded the phase
		m.slotUse = 0
		return b.allow(m, b.regime.Load(), at)
	case !passes:
		return b.refuse(p.refusal)
	}
	m.fill(b, p, at)
	return nil
}

// checkShare does the work of check for a recovering breaker.
func (b *Breaker) checkShare(at time.Duration) error {
	b.mu.Lock()
	p := b.advance(at)
	refused := p.state == Recovering && !p.ramp.passes(at)
	if refused {
		p.ramp.skipped++
	}
	b.mu.Unlock()
	if refused {
		return b.refuse(p.refusal)
	}
	return nil
}

// addRamped adds the result of a call of a recovering breaker. If all calls pass, the results since
// the share last fell are judged as those of a closed breaker are. Otherwise the first calls of the
// round are. The lock is held.
func (b *Breaker) addRamped(m *Permit, p *regime, o Outcome, took, at time.Duration) {
	r := p.ramp
	judged := o == Success || o == Failure
	if r.trusted.end(m.slotUse) && judged {
		e := evidence{pending: r.trusted.pending()}
		if run := p.addToRun(o == Failure); o == Failure {
			e.run = run
		}
		e.streak, _ = r.counted.Record(at, tally.Outcome(o), took)
		e.calls, e.slow = r.counted.Rates(at, &r.floor)
		if r.oneOf == 1 && p.rules.failing(&e) {
			b.failRound(p, window.Counts{}, at)
		}
	}
	if r.round.end(m.slotUse) && judged && r.oneOf > 1 {
		r.results = withResult(r.results, o, took > p.rules.config.SlowCall)
		b.judgeRound(p, at)
	}
}

// withResult returns the counts with one more result.
func withResult(c window.Counts, o Outcome, slow bool) window.Counts {
	if o == Failure {
		c.Failures++
		c.ConsecutiveFailures++
	} else {
		c.Successes++
		c.ConsecutiveFailures = 0
	}
	if slow {
		c.Slow++
		if o == Failure {
			c.SlowFailures++
		}
	}
	return c
}

// judgeRound ends the round of a recovering breaker of whose calls a share passes, if its results
// decide it. The lock is held.
func (b *Breaker) judgeRound(p *regime, at time.Duration) {
	r := p.ramp
	failed, decided := p.rules.decide(r.results, r.round.pending(), 1)
	switch {
	case !decided:
	case failed:
		b.failRound(p, r.results, at)
	default:
		r.goodAt = max(r.goodAt, at)
		r.grow()
	}
}

// failRound halves the share of a recovering breaker. It opens the breaker if the share was
// smallest and no round was good for Recovery. The lock is held.
func (b *Breaker) failRound(p *regime, c window.Counts, at time.Duration) {
	r, recovery := p.ramp, p.rules.config.Recovery
	relapsed := r.oneOf == leastShare && at-r.goodAt >= recovery
	r.shrink(at)
	p.run.Clear()
	if relapsed {
		why := fmt.Sprintf("all rounds of calls failed for %v: %d of the last %d failed", recovery, c.Failures, c.Calls())
		b.open(p, at, cause{reason: why, origin: byCalls}, c)
	}
}

const (
	// 1/leastShare is the smallest share of calls that a recovering breaker lets through. A
	// recovering breaker begins with that share.
	leastShare = 8
	// maxRampPause is the longest time for which a recovering breaker lets no call through.
	maxRampPause = time.Second
)

// ramp decides which calls a recovering breaker lets through: one of every oneOf calls. A good
// round of calls doubles the share, and a failed one halves it, as TCP changes its congestion
// window from round trip to round trip (RFC 5681). Calls that began before a round are not judged
// in it, because a different share of the calls passed then. Breaker.mu guards a ramp.
type ramp struct {
	oneOf    int           // from 1, all calls pass, to leastShare
	skipped  int           // the calls refused since the last call that passed
	passedAt time.Duration // when the last call passed
	passed   uint32        // how many calls passed, and the number of the last of them

	// While a share passes: the calls since the share last changed, their results, and when the
	// first of them passed.
	round   batch
	results window.Counts
	firstAt time.Duration
	// The calls since the share last fell. They are judged when all calls pass.
	trusted batch
	counted *tally.Calls
	floor   tally.Counts // of counted when the share last fell

	// when the last round was good and when one last failed, or the beginning of the ramp
	goodAt, failedAt time.Duration
}

// batch is calls that passed one after the other.
type batch struct {
	before uint32 // the number of the last call before them
	ended  uint32 // how many of them have ended
	newest uint32 // the position in the batch of the latest call that has ended
}

// end counts a call that has ended, and reports whether it belongs to the batch.
func (b *batch) end(number uint32) bool {
	position := number - b.before
	if int32(position) <= 0 { //nolint:gosec // numbers wrap around
		return false
	}
	b.ended++
	b.newest = max(b.newest, position)
	return true
}

// pending returns the number of calls in flight that passed before one that has ended.
func (b *batch) pending() int64 { return int64(b.newest - b.ended) }

// newRamp returns a ramp that lets the first call through, and counts its calls in an empty tally.
func newRamp(at time.Duration, counted *tally.Calls) *ramp {
	return &ramp{oneOf: leastShare, skipped: leastShare - 1, passedAt: at, counted: counted, goodAt: at, failedAt: at}
}

// passes reports whether a call that is made at the given time passes.
func (r *ramp) passes(at time.Duration) bool {
	return r.skipped+1 >= r.oneOf || at-r.passedAt >= maxRampPause
}

// pass counts an allowed call and returns its number.
func (r *ramp) pass(at time.Duration) uint32 {
	r.skipped = 0
	r.passedAt = max(r.passedAt, at)
	r.passed++
	if r.passed == r.round.before+1 {
		r.firstAt = r.passedAt
	}
	return r.passed
}

// isOverdue reports whether the round has no verdict although its first call passed the timeout
// ago.
func (r *ramp) isOverdue(at, timeout time.Duration) bool {
	return r.oneOf > 1 && r.passed > r.round.before && at-r.firstAt >= timeout
}

// grow doubles the share and begins a round.
func (r *ramp) grow() {
	r.oneOf /= 2
	r.round, r.results = batch{before: r.passed}, window.Counts{}
}

// shrink halves the share, begins a round, and forgets all results.
func (r *ramp) shrink(at time.Duration) {
	r.failedAt = max(r.failedAt, at)
	r.oneOf = min(2*r.oneOf, leastShare)
	r.round, r.results = batch{before: r.passed}, window.Counts{}
	r.trusted, r.floor = r.round, r.counted.Totals()
	r.counted.SetStreak(0)
}
