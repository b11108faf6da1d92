package breaker

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/internal/cusum"
	"github.com/weir-go/weir/internal/tally"
	"github.com/weir-go/weir/window"
)

// State says how a breaker treats calls. Logs, metrics and configurations show the same text, such
// as half_open.
type State string

// The states that a breaker enters automatically, and the overrides that Force sets on top of them.
const (
	Closed       State = "closed"        // calls pass and are counted
	Open         State = "open"          // calls are refused until the cooldown is over
	HalfOpen     State = "half_open"     // a few calls pass as probes, and their results decide
	Recovering   State = "recovering"    // a share of the calls passes, which their results change
	ForcedOpen   State = "forced_open"   // override: calls are refused until Release
	ForcedClosed State = "forced_closed" // override: calls pass and are counted; nothing opens it
	Disabled     State = "disabled"      // override: calls pass and are not counted
	Shadow       State = "shadow"        // override: calls pass; those it would refuse are counted
)

// stateMachine is the state machine: it describes the behavior of a breaker in each state. The
// package comment has the same table, with what ends each state.
var stateMachine = map[State]behavior{
	Closed:       {passes: allCalls, results: judgeResults, counts: showWindow},
	Open:         {passes: noCalls, counts: showOpening},
	HalfOpen:     {passes: onlyProbes, results: probeResults, counts: showProbes},
	Recovering:   {passes: shareOfCalls, results: rampResults, counts: showWindow},
	ForcedOpen:   {passes: noCalls},
	ForcedClosed: {passes: allCalls, results: countResults, counts: showWindow},
	Disabled:     {passes: allCalls},
	Shadow:       {passes: allCalls, results: countResults, counts: showWindow},
}

// behavior describes how a breaker treats calls in a state.
type behavior struct {
	passes  passRule
	results resultUse
	counts  countsShown
}

// passRule says which calls pass.
type passRule uint8

const (
	allCalls passRule = iota
	noCalls
	onlyProbes
	shareOfCalls
)

// resultUse says how the results of calls are used.
type resultUse uint8

const (
	dropResults resultUse = iota
	countResults
	judgeResults // counted, and each may open the breaker
	probeResults // counted, and enough of them end the state
	rampResults  // counted, and each round of them sets the share of the calls that pass
)

// countsShown says what Counts returns.
type countsShown uint8

const (
	showNothing countsShown = iota
	showWindow
	showOpening // the counts that opened the breaker
	showProbes
)

const stateCount = 8

// states are the states that callers see, in the order of the metrics.
var states = [stateCount]State{Closed, Open, HalfOpen, Recovering, ForcedOpen, ForcedClosed, Disabled, Shadow}

// perState has one value for each of states.
type perState[T any] [stateCount]T

func (p *perState[T]) of(s State) *T { return &p[slices.Index(states[:], s)] }

// isOverride reports whether Force may set s.
func (s State) isOverride() bool { return slices.Contains(states[4:], s) }

// phase is one stay in a state. A phase is complete before it is published by one store of a
// pointer, and never changes afterwards, except for what is atomic in it. A permit refers to the
// phase that let its call through, so a result that comes after that phase is recognized.
type phase struct {
	stay
	behavior       // of the state
	callNeeds      // of the rules
	fast      bool // calls pass, and need no number
	counted   bool // the calls in flight are counted
	free      bool // fast, and neither counted nor timed
	plain     bool // fast, not counted, and Config.Classify is not set
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
}

// derive computes fields from the state, the rules and the breaker.
func (p *phase) derive(b *Breaker) {
	p.behavior, p.callNeeds = stateMachine[p.state], p.rules.callNeeds
	p.timed = p.measured || p.sample != nil
	p.fast = p.state == Closed && !p.watched && p.sample == nil
	p.counted = p.rules.config.Active || b.member != nil && !b.member.isUnguarded()
	p.free = p.fast && !p.counted && !p.timed
	p.plain = p.fast && !p.counted && p.rules.config.Classify == nil
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

// endedWindows holds the counts of windows that Reconfigure has ended. An endedWindows never
// changes.
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
func (p endedWindows) withTally(t *tally.Calls, at time.Duration) endedWindows {
	next := endedWindows{counts: p.counts, latency: p.latency}
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

func (p endedWindows) earlierLatency() (l window.Latency) {
	if p.latency != nil {
		l = *p.latency
	}
	return l
}

// totals returns all calls. ConsecutiveFailures is meaningless.
func (p endedWindows) totals() tally.Counts {
	sum := p.counts
	for _, e := range p.recent {
		sum = sum.Plus(e.tally.Totals())
	}
	return sum
}

// lifetimeLatency returns the durations of all calls.
func (p endedWindows) lifetimeLatency() window.Latency {
	sum := p.earlierLatency()
	for _, e := range p.recent {
		sum = sum.Plus(window.Latency(e.tally.LifetimeLatency()))
	}
	return sum
}
