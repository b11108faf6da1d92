package breaker

import (
	"fmt"
	"math"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/internal/cusum"
	"github.com/weir-go/weir/internal/tally"
	"github.com/weir-go/weir/window"
)

// phase is one stay in a state. A phase is complete before it is published by one store of a
// pointer, and never changes afterwards, except for what is atomic in it. A permit refers to the
// phase that let its call through, so a result that comes after that phase is recognized.
type phase struct {
	stay
	behavior       // of the state
	callNeeds      // of the rules
	fast      bool // calls pass and are not counted while in flight
	plain     bool // fast, in no group, and Config.Classify is not set
	rules     *rules
	epoch     uint64 // a permit counts for all phases of its epoch; Reconfigure keeps the epoch
	recovery
	under    *phase        // of an override: the phase underneath
	replaced State         // while Config.Refuse is set: the override that follows, "" for none
	refusal  *OpenError    // the error of refused calls
	shadow   *Breaker      // Shadow: the breaker that is asked about each call
	flights  *flights      // Closed, Recovering: the calls in flight, if HungCalls is set
	live     *mutableState // what changes while the phase lasts
	timing

	tally *tally.Calls
	past  endedWindows // the windows that Reconfigure has ended, as part of the totals
	// the totals of tally when the phase began: calls before it do not count
	floor          tally.Counts
	failuresBefore int64      // the failures of the breaker when the phase began
	refusedBefore  int64      // the calls that the breaker had refused when the phase began
	incidents      *incidents // nil before the first opening

	spent   perState[time.Duration] // the time spent in each state before the phase
	entered perState[int64]         // the transitions into each state, this phase included
}

// stay is a state and the time it lasts.
type stay struct {
	state State
	since time.Duration
	// Open: end of the cooldown; HalfOpen: end of HalfOpenTimeout, once there was a probe
	until time.Duration
	// Open: the length of the wait that ends at until. After Release, a stay may begin in the
	// middle of it.
	wait time.Duration
}

// endlessStay returns a stay that time does not end.
func endlessStay(s State, since time.Duration) stay {
	return stay{state: s, since: since, until: math.MaxInt64}
}

// openStay returns the stay of a breaker that opens.
func openStay(since, until time.Duration) stay { return stay{Open, since, until, until - since} }

// recovery is the state that a breaker keeps from its first opening until it closes. During an
// override the phase underneath keeps it.
type recovery struct {
	reason   string        // why the breaker opened
	openedBy window.Counts // the counts that opened it
	rounds   int           // rounds of probes that failed
	byRun    bool          // a run of failures opened it
	// after a run: for how long calls may be refused after a failed probe, and until when they may
	// be
	spare, spareUntil time.Duration
	details           *openingDetails // what is known of the opening; nil if it was opened by hand
	refused           int64           // the calls that the breaker had refused when it last opened
	cooldown          time.Duration   // the latest cooldown
}

// mutableState holds the fields that change while a phase lasts. The phases of one epoch share it.
type mutableState struct {
	// the time before which the service asked not to be called
	retryAt  atomic.Int64
	run      cusum.Counter                 // Closed: the run of failures
	runBegan atomic.Int64                  // Closed: when the run began
	probed   atomic.Pointer[window.Counts] // HalfOpen: the results of the probes
	full     atomic.Pointer[OpenError]     // HalfOpen: the error while all slots are occupied
	ramp     *ramp                         // Recovering: which calls pass; guarded by Breaker.mu
	// HalfOpen, Recovering: spreads the waits that refused calls are told
	spread evenSequence
	// a number computed from the time at which the phase began
	drawn uint64
	// Closed: the time until which further openings that MaxOpen prevents are not reported; guarded
	// by Breaker.mu
	prevented time.Duration
	// evicted: the calls that were counted here or by the successor; guarded by Breaker.mu
	seen int64
}

// derive computes fields from the state, the rules and the breaker.
func (p *phase) derive(b *Breaker) {
	p.behavior, p.callNeeds = stateMachine[p.state], p.rules.callNeeds
	p.timed = p.measured || p.sample != nil
	p.fast = p.state == Closed && !p.watched && p.sample == nil
	p.plain = p.fast && b.member == nil && p.rules.config.Classify == nil
}

// complete creates the parts that the phase of a new state needs.
func (p *phase) complete(b *Breaker) {
	p.beginTiming(b)
	p.derive(b)
	p.live, p.refusedBefore = &mutableState{drawn: hashTime(b.date(p.since))}, int64(b.refused.Load())
	p.live.spread.state.Store(p.live.drawn)
	p.live.probed.Store(&window.Counts{})
	p.live.retryAt.Store(math.MinInt64)
	p.refusal = p.newRefusal(b)
	switch p.state {
	case Closed:
		p.rounds, p.details = 0, nil
		b.forgetFailures()
		p.flights = newFlights(p.rules, p.since)
	case Open:
		p.refusal.Until = b.date(p.passesFrom())
	case HalfOpen:
		p.refusal.Until = b.date(p.passesFrom())
		b.slots.reset(p.rules.config.Probes)
	case Recovering:
		p.flights = newFlights(p.rules, p.since)
		p.refusal.cooldown = maxRampPause
		p.refusal.spread = &p.live.spread
		p.live.ramp = newRamp(p.since, p.rules.newTally(false, p.since))
	case Shadow:
		p.shadow = b.newShadow(p)
	default: // the other overrides need nothing
	}
}

// newRefusal returns the error of the calls that the phase refuses.
func (p *phase) newRefusal(b *Breaker) *OpenError {
	e := &OpenError{Name: b.name, Key: b.member.text(), State: p.state, Reason: p.reason, cooldown: p.rules.config.Cooldown}
	if p.details != nil && p.under == nil {
		e.Margin, e.LastFailures = p.details.margin, p.details.failures
	}
	return e
}

// passesFrom returns the time from which an open breaker, or a half-open one that spares calls,
// lets a call pass however few calls there are.
func (p *phase) passesFrom() time.Duration {
	switch {
	case !p.spares():
		return p.until
	case p.state == Open:
		return max(p.until, p.spareUntil)
	default:
		return p.spareUntil
	}
}

// next returns the phase that follows p, not yet complete.
func (p *phase) next(s stay) *phase {
	s.since = p.latest(s.since)
	next := &phase{
		stay: s, rules: p.rules, epoch: p.epoch + 1, recovery: p.recovery, tally: p.tally, past: p.past,
		floor: p.tally.Totals(), failuresBefore: p.totals().Failures, spent: p.spent, entered: p.entered,
		incidents: p.incidents,
	}
	*next.spent.of(p.state) += s.since - p.since
	*next.entered.of(s.state)++
	return next
}

// timedOut reports whether the time of the phase is over.
func (p *phase) timedOut(at time.Duration) bool { return at >= p.until && p.until != math.MaxInt64 }

// stayAt returns the stay at the given time. When the time of an open phase is over, the breaker is
// half-open, and when the time of a half-open phase is over, it is open, whether a call is made or
// not.
func (p *phase) stayAt(at time.Duration) stay {
	if !p.timedOut(at) {
		return p.stay
	}
	following := p.followingStays(at)
	return following[len(following)-1]
}

// followingStays returns the one or two stays that followed the phase when its time was over. The
// last of them is the stay at the given time.
func (p *phase) followingStays(at time.Duration) []stay {
	if p.state == Open {
		return []stay{endlessStay(HalfOpen, p.until)}
	}
	open := openStay(p.until, p.reopenedUntil())
	if at < open.until || open.until == math.MaxInt64 {
		return []stay{open}
	}
	return []stay{open, endlessStay(HalfOpen, open.until)}
}

// timeoutReason returns why the phase is over, for the change that its end causes.
func (p *phase) timeoutReason() string {
	switch {
	case p.state == HalfOpen:
		return fmt.Sprintf("too few probes ended within the HalfOpenTimeout of %v", roundForText(p.rules.config.HalfOpenTimeout))
	case p.wait == p.cooldown:
		return fmt.Sprintf("the cooldown of %v is over", roundForText(p.wait))
	default: // the service asked for a longer wait, or OpenFor opened the breaker
		return fmt.Sprintf("the wait of %v is over", roundForText(p.wait))
	}
}

// roundForText rounds a time that may have a random part to as many digits as a reader needs.
func roundForText(d time.Duration) time.Duration {
	if d < time.Second {
		return d.Round(time.Microsecond)
	}
	return d.Round(time.Millisecond)
}

// reopenedUntil returns the end of the cooldown that follows the HalfOpenTimeout of the phase.
func (p *phase) reopenedUntil() time.Duration {
	return max(addClamped(p.until, p.cooldown), p.askedUntil(p.until, p.live.drawn))
}

// askedUntil returns the time before which the service asked not to be called. For a breaker that
// opens at the given time, it is made later by a share of the wait. The share is computed from the
// random number drawn.
func (p *phase) askedUntil(at time.Duration, drawn uint64) time.Duration {
	return stretchTime(time.Duration(p.live.retryAt.Load()), at, p.rules.config.maxStretch(), drawn)
}

// history returns the stay at the given time, the time spent in each state before it, and the
// transitions into each state up to it.
func (p *phase) history(at time.Duration) (now stay, spent perState[time.Duration], entered perState[int64]) {
	now, spent, entered = p.stay, p.spent, p.entered
	if p.timedOut(at) {
		for _, s := range p.followingStays(at) {
			*spent.of(now.state) += s.since - now.since
			*entered.of(s.state)++
			now = s
		}
	}
	return now, spent, entered
}

// latest returns the given time, or the newest time that the phase has seen if that is later: a
// stale time moves no deadline.
func (p *phase) latest(at time.Duration) time.Duration {
	return max(at, p.since, p.tally.NewestBucket())
}

// totals returns the counts of all calls since the breaker was made.
func (p *phase) totals() tally.Counts {
	now := p.tally.Totals()
	sum := now.Plus(p.past.totals())
	sum.ConsecutiveFailures = now.ConsecutiveFailures
	return sum
}

// counts returns the calls in the window since the phase began.
func (p *phase) counts(at time.Duration) window.Counts {
	c := window.Counts(p.tally.Window(at, &p.floor))
	c.ConsecutiveFailures = p.consecutive(p.tally.Streak())
	return c
}

// consecutive returns how many of the consecutive failures belong to this phase.
func (p *phase) consecutive(streak int64) int64 {
	return min(streak, p.totals().Failures-p.failuresBefore)
}

// hasLatency reports whether calls were timed, now or before a Reconfigure.
func (p *phase) hasLatency() bool {
	return p.rules.config.Latency || p.past.latency != nil || len(p.past.recent) > 0
}

// addClamped returns a + d without overflow, for d ≥ 0.
func addClamped(a, d time.Duration) time.Duration {
	if s := a + d; s >= a {
		return s
	}
	return math.MaxInt64
}
