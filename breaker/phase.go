package breaker

import (
	"cmp"
	"math"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/internal/cusum"
	"github.com/weir-go/weir/internal/tally"
	"github.com/weir-go/weir/window"
)

// phase is one stay in a state while it lasts, with its history: what changes in it is atomic, or
// guarded by Breaker.mu. A [stay] is the plan of one.
type phase struct {
	state State
	since time.Duration
	// Open: the length of the cooldown that ends the phase. After Release, a phase may begin in the
	// middle of it.
	wait time.Duration
	// Open: end of the cooldown; HalfOpen: end of HalfOpenTimeout, once there was a probe.
	// Otherwise math.MaxInt64.
	ends       atomic.Int64
	generation uint64 // a result counts if its call began in a phase with the same number
	*recovery

	failuresBefore int64      // the failures when the phase began
	refusedBefore  int64      // the calls refused when the phase began
	incidents      *incidents // nil before the first opening
	stays          *pastStays // nil before the first transition
	shadow         *Breaker   // Shadow: the breaker that is asked about each call

	retryAt  atomic.Int64  // before that time the service asked not to be called
	run      cusum.Counter // Closed: the run of failures
	runBegan atomic.Int64  // Closed: when the run began
	drawn    uint64        // a number computed from the time at which the phase began
	*trial                 // HalfOpen, Recovering; nil otherwise
	// Closed: the time until which further openings that MaxOpen prevents are not reported; guarded
	// by Breaker.mu
	prevented time.Duration
}

// trial is the part of a phase in which results decide whether more calls pass.
type trial struct {
	probed atomic.Pointer[window.Counts] // HalfOpen: the results of the probes
	full   atomic.Pointer[OpenError]     // HalfOpen: the error while all slots are occupied
	ramp   *ramp                         // Recovering: which calls pass; guarded by Breaker.mu
	spread evenSequence                  // spreads the waits that refused calls are told
}

// regime is how the breaker treats calls: a phase, under a config, and measured in some way. It is
// complete before it is published by one store of a pointer, and never changes afterwards. The end
// of a phase publishes a regime with another phase. Reconfigure, the begin and the end of a sample,
// and a change of what lies under an override publish one with the same phase. A permit refers to
// the regime that let its call through.
type regime struct {
	*phase
	behavior       // of the state
	callNeeds      // of the rules
	fast      bool // calls pass, and need no number
	counted   bool // the calls in flight are counted
	free      bool // fast, and neither counted nor timed
	plain     bool // fast, not counted, and Config.Classify is not set
	rules     *rules
	under     *regime    // of an override: what it lies over
	forcedFor string     // of an override: its reason
	refusal   *OpenError // the error of refused calls; nil if all calls pass
	timing

	tally *tally.Calls
	// the windows that Reconfigure has ended, as part of the totals; nil for none
	past *endedWindows
	// the totals of tally when the phase began: calls before it do not count; never changes
	floor *tally.Counts
}

// newPhase returns the phase of a stay, without its history.
func newPhase(s stay) *phase {
	p := &phase{state: s.state, since: s.since, wait: s.wait}
	p.ends.Store(int64(s.until))
	if s.state == HalfOpen || s.state == Recovering {
		p.trial = new(trial)
		p.probed.Store(new(window.Counts))
	}
	p.retryAt.Store(math.MinInt64)
	return p
}

// stay returns the stay that the phase is, if it ends as it is to end now.
func (p *phase) stay() stay { return stay{p.state, p.since, p.until(), p.wait} }

// until returns when the phase ends, or math.MaxInt64.
func (p *phase) until() time.Duration { return time.Duration(p.ends.Load()) }

// endless makes the phase one that time does not end.
func (p *phase) endless() { p.ends.Store(math.MaxInt64) }

// moved returns a copy of a phase under an override for a stay that has followed since.
func (p *phase) moved(s stay) *phase {
	next := newPhase(s)
	next.generation, next.recovery, next.failuresBefore, next.refusedBefore = p.generation, p.recovery, p.failuresBefore, p.refusedBefore
	next.incidents, next.stays, next.drawn = p.incidents, p.stays, p.drawn
	next.retryAt.Store(p.retryAt.Load())
	return next
}

// pastStays are the stays before a phase. They never change: a transition makes new ones.
type pastStays struct {
	spent   perState[time.Duration] // the time spent in each state before the phase
	entered perState[int64]         // the transitions into each state, that into the phase included
}

// orNone returns a copy. A nil pastStays has no stays.
func (s *pastStays) orNone() (all pastStays) {
	if s != nil {
		all = *s
	}
	return all
}

// recovery is the state that a breaker keeps from its first opening until it closes. During an
// override the phase underneath keeps it. Once its phase is complete, a recovery never changes.
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

// initialRecovery is that of a breaker that has not left its first state.
var initialRecovery = &recovery{reason: "initial state"}

// noCounts is the floor of a tally that began with its phase.
var noCounts = new(tally.Counts)

// derive computes fields from the state, the rules and the breaker.
func (p *regime) derive(b *Breaker) {
	p.behavior, p.callNeeds = p.state.behavior(), p.rules.callNeeds
	p.timed = p.measured || p.sample != nil
	p.fast = p.state == Closed && p.sample == nil
	p.counted = b.member != nil && !b.member.isUnguarded()
	p.free = p.fast && !p.counted && !p.timed
	p.plain = p.fast && !p.counted && p.rules.config.Classify == nil
}

// complete creates the parts that the phase of a new state needs.
func (p *regime) complete(b *Breaker) {
	p.timing = timing{sampledFrom: p.since}
	if p.state.behavior().results != dropResults && p.state != Shadow { // whose shadow samples
		p.timing = b.newTiming(p.since)
	}
	p.derive(b)
	p.drawn, p.refusedBefore = hashTime(b.date(p.since)), int64(b.refused.Load())
	if p.trial != nil {
		p.spread.state.Store(p.drawn)
	}
	p.refusal = p.newRefusal(b)
	switch p.state {
	case Closed:
		if p.rounds > 0 || p.details != nil {
			p.recovery = &recovery{reason: p.reason}
		}
		b.forgetFailures()
	case Open:
		p.refusal.Until = b.date(p.passesFrom())
	case HalfOpen:
		p.refusal.Until = b.date(p.passesFrom())
		b.rareParts().slots.reset(p.rules.config.Probes)
	case Recovering:
		p.refusal.cooldown = maxRampPause
		p.refusal.spread = &p.spread
		p.ramp = newRamp(p.since, p.rules.newTally(false, p.since))
	case Shadow:
		p.shadow = b.newShadow(p)
	default: // the other overrides need nothing
	}
}

// newRefusal returns the error of the calls that the phase refuses, or nil if all calls pass.
func (p *regime) newRefusal(b *Breaker) *OpenError {
	if p.passes == allCalls {
		return nil
	}
	e := &OpenError{Name: b.name, Key: b.member.text(), State: p.state, Reason: cmp.Or(p.forcedFor, p.reason), cooldown: p.rules.config.Cooldown}
	if p.details != nil && p.under == nil {
		e.Margin, e.LastFailures = p.details.margin, p.details.failures
	}
	return e
}

// passesFrom returns the time from which an open breaker, or a half-open one that spares calls,
// lets a call pass however few calls there are.
func (p *regime) passesFrom() time.Duration {
	switch {
	case !p.spares():
		return p.until()
	case p.state == Open:
		return max(p.until(), p.spareUntil)
	default:
		return p.spareUntil
	}
}

// next returns the regime of the phase that follows p, not yet complete.
func (p *regime) next(s stay) *regime {
	s.since = p.latest(s.since)
	floor, stays := p.tally.Totals(), p.stays.orNone()
	*stays.spent.of(p.state) += s.since - p.since
	*stays.entered.of(s.state)++
	next := &regime{phase: newPhase(s), rules: p.rules, tally: p.tally, past: p.past, floor: &floor}
	next.generation, next.recovery, next.failuresBefore = p.generation+1, p.recovery, p.totals().Failures
	next.stays, next.incidents = &stays, p.incidents
	return next
}

// latest returns the given time, or the newest time that the phase has seen if that is later: a
// stale time moves no deadline.
func (p *regime) latest(at time.Duration) time.Duration {
	return max(at, p.since, p.tally.NewestBucket())
}

// totals returns the counts of all calls since the breaker was made.
func (p *regime) totals() tally.Counts {
	now := p.tally.Totals()
	sum := now.Plus(p.past.totals())
	sum.ConsecutiveFailures = now.ConsecutiveFailures
	return sum
}

// counts returns the calls in the window since the phase began.
func (p *regime) counts(at time.Duration) window.Counts {
	c := window.Counts(p.tally.Window(at, p.floor))
	c.ConsecutiveFailures = p.consecutive(p.tally.Streak())
	return c
}

// consecutive returns how many of the consecutive failures belong to this phase.
func (p *regime) consecutive(streak int64) int64 {
	return min(streak, p.totals().Failures-p.failuresBefore)
}

// hasLatency reports whether calls were timed, now or before a Reconfigure.
func (p *regime) hasLatency() bool {
	return p.rules.config.Latency || p.past != nil
}

// endedWindows holds the counts of windows that Reconfigure has ended. An endedWindows never
// changes, and a nil one has none.
type endedWindows struct {
	recent  []endedTally
	counts  tally.Counts    // the calls of earlier tallies
	latency *window.Latency // the durations of earlier tallies; nil for none
}

// endedTally is a tally that a goroutine may still record to, if it loaded the phase before the
// tally ended.
type endedTally struct {
	tally *tally.Calls
	at    time.Duration
}

// recordingTime is an upper bound of the time from loading the phase to recording a call.
const recordingTime = time.Minute

// withTally returns the ended windows with one more tally, which ended at the given time. For a
// tally that no goroutine can record to any more, only the totals are kept.
func (p *endedWindows) withTally(t *tally.Calls, at time.Duration) *endedWindows {
	if p == nil {
		return &endedWindows{recent: []endedTally{{t, at}}}
	}
	next := &endedWindows{counts: p.counts, latency: p.latency}
	for _, e := range p.recent {
		if at-e.at < recordingTime {
			next.recent = append(next.recent, e)
			continue
		}
		next.counts = next.counts.Plus(e.tally.Totals())
		if l := window.Latency(e.tally.LifetimeLatency()); l.Count() > 0 {
			sum := next.earlierLatency().Plus(l)
			next.latency = &sum
		}
	}
	next.recent = append(next.recent, endedTally{t, at})
	return next
}

func (p *endedWindows) earlierLatency() (l window.Latency) {
	if p.latency != nil {
		l = *p.latency
	}
	return l
}

// totals returns all calls. ConsecutiveFailures is meaningless.
func (p *endedWindows) totals() (sum tally.Counts) {
	if p == nil {
		return sum
	}
	sum = p.counts
	for _, e := range p.recent {
		sum = sum.Plus(e.tally.Totals())
	}
	return sum
}

// lifetimeLatency returns the durations of all calls.
func (p *endedWindows) lifetimeLatency() (sum window.Latency) {
	if p == nil {
		return sum
	}
	sum = p.earlierLatency()
	for _, e := range p.recent {
		sum = sum.Plus(window.Latency(e.tally.LifetimeLatency()))
	}
	return sum
}
