package breaker

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/weir-go/weir/internal/settings"
	"github.com/weir-go/weir/internal/tally"
	"github.com/weir-go/weir/window"
)

// State says how a breaker treats calls. Logs, metrics and configurations show the same text, such
// as half_open.
type State string

// The states that a breaker enters automatically, and the overrides on top of them that Force or
// Config.Force sets.
const (
	Closed       State = "closed"        // calls pass and are counted
	Open         State = "open"          // calls are refused until the cooldown is over
	HalfOpen     State = "half_open"     // a few calls pass as probes, and their results decide
	Recovering   State = "recovering"    // a share of the calls passes, which their results change
	ForcedOpen   State = "forced_open"   // override: calls are refused
	ForcedClosed State = "forced_closed" // override: calls pass and are counted; nothing opens it
	Disabled     State = "disabled"      // override: calls pass and are not counted
	Shadow       State = "shadow"        // override: calls pass; those it would refuse are counted
)

// behavior is the state machine: which calls pass in each state, what their results do, and what
// Counts shows. The comments say what ends a state. Besides, the methods at the end of this file
// end any state. docs/breaker.md has the same table.
func (s State) behavior() behavior {
	switch s {
	case Closed: // ends when the results reach a limit of the rules: trip
		return behavior{passes: allCalls, results: judgeResults, counts: showWindow}
	case Open: // ends when the cooldown is over: advance
		return behavior{passes: noCalls, counts: showOpening}
	case HalfOpen:
		// ends when enough probes have results: decideByProbes; or after HalfOpenTimeout: advance
		return behavior{passes: onlyProbes, results: probeResults, counts: showProbes}
	case Recovering:
		// ends when all calls pass and no round has failed: allowShare; or if all rounds fail:
		// failRound
		return behavior{passes: shareOfCalls, results: rampResults, counts: showWindow}
	// the overrides end by Release, Reconfigure or another override: followOverride
	case ForcedOpen:
		return behavior{passes: noCalls}
	case ForcedClosed, Shadow:
		return behavior{passes: allCalls, results: countResults, counts: showWindow}
	default: // Disabled
		return behavior{passes: allCalls}
	}
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

// timedOut reports whether the time of the phase is over.
func (p *phase) timedOut(at time.Duration) bool {
	until := p.until()
	return at >= until && until != math.MaxInt64
}

// stayAt returns the stay at the given time. When the time of an open phase is over, the breaker is
// half-open, and when the time of a half-open phase is over, it is open, whether a call is made or
// not.
func (p *regime) stayAt(at time.Duration) stay {
	if !p.timedOut(at) {
		return p.stay()
	}
	following := p.followingStays(at)
	return following[len(following)-1]
}

// followingStays returns the one or two stays that followed the phase when its time was over. The
// last of them is the stay at the given time.
func (p *regime) followingStays(at time.Duration) []stay {
	if p.state == Open {
		return []stay{endlessStay(HalfOpen, p.until())}
	}
	open := openStay(p.until(), p.reopenedUntil())
	if at < open.until || open.until == math.MaxInt64 {
		return []stay{open}
	}
	return []stay{open, endlessStay(HalfOpen, open.until)}
}

// timeoutReason returns why the phase is over, for the change that its end causes.
func (p *regime) timeoutReason() string {
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
func (p *regime) reopenedUntil() time.Duration {
	return max(addClamped(p.until(), p.cooldown), p.askedUntil(p.until(), p.drawn))
}

// askedUntil returns the time before which the service asked not to be called. For a breaker that
// opens at the given time, it is made later by a share of the wait. The share is computed from the
// random number drawn.
func (p *regime) askedUntil(at time.Duration, drawn uint64) time.Duration {
	return stretchTime(time.Duration(p.retryAt.Load()), at, p.rules.config.maxStretch(), drawn)
}

// history returns the stay at the given time, the time spent in each state before it, and the
// transitions into each state up to it.
func (p *regime) history(at time.Duration) (now stay, spent perState[time.Duration], entered perState[int64]) {
	past := p.stays.orNone()
	now, spent, entered = p.stay(), past.spent, past.entered
	if p.timedOut(at) {
		for _, s := range p.followingStays(at) {
			*spent.of(now.state) += s.since - now.since
			*entered.of(s.state)++
			now = s
		}
	}
	return now, spent, entered
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
func (b *Breaker) enter(s stay, why cause, counts window.Counts) *regime {
	p := b.regime.Load()
	next := p.next(s)
	next.complete(b)
	b.publish(next, Change{From: p.state, To: s.state, Reason: why.reason, origin: why.origin, Counts: counts})
	return next
}

// publish makes p the regime in effect and queues the change for OnChange. The lock is held.
func (b *Breaker) publish(p *regime, c Change) {
	p.incidents = p.incidents.afterTransition(&c, b.regime.Load(), p.since, b.date)
	b.regime.Store(p)
	b.updatePlace(p)
	if b.shadowOf != nil {
		b.shadowOf.reportOpening(b, p.since, c)
		return
	}
	c.Name, c.Key, c.At = b.name, b.member.text(), b.date(p.since)
	b.changes().push(c)
}

// advance makes the transitions that were due by the given time, each at the time it was due, and
// returns the regime in effect. The lock is held.
func (b *Breaker) advance(at time.Duration) *regime {
	p := b.regime.Load()
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
func (b *Breaker) trip(p *regime, at time.Duration, why cause, calls tally.Pair) {
	b.mu.Lock()
	now := b.regime.Load()
	if now.generation != p.generation {
		b.mu.Unlock()
		return
	}
	b.changes().cause = why.ctx
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
	b.changes().cause = nil
	b.mu.Unlock()
	b.deliver()
}

// open opens the breaker for a cooldown, or longer if the service asked for that. The lock is held.
func (b *Breaker) open(p *regime, at time.Duration, why cause, counts window.Counts) {
	at = p.latest(at)
	rounds := p.rounds
	if p.state == HalfOpen || p.state == Recovering {
		rounds++
	}
	wait := p.rules.cooldown(rounds)
	next := p.next(openStay(at, max(addClamped(at, wait), p.askedUntil(at, hashTime(b.date(at))))))
	details := b.newDetails(why.margin)
	next.recovery = &recovery{
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

// What an operator does.

// override is a state that lies over the automatic one, with a reason. One that is set by hand lies
// over that of the Config. Lifting it shows what is below: that of the Config, or else the
// automatic state.
type override struct {
	state   State  // "" for none
	reason  string // what refused callers are told
	version uint64 // of one set by hand: see view.Setting.Version
}

// overrideInEffect returns the override in effect of a breaker with an override of its own. An
// override of the group lies over it if it was set later.
func (b *Breaker) overrideInEffect(own override, r *rules) override {
	all := b.member.groupOverride()
	switch {
	case all.state != "" && all.version > own.version:
		return all
	case own.state != "":
		return own
	}
	return override{state: r.config.Force, reason: cmp.Or(r.config.ForceReason, forcedReason)}
}

// forcedReason is the reason of an override without a reason.
const forcedReason = "forced"

// followOverride makes the override in effect that of the breaker after an override or the rules
// have changed. why is the reason of the transition. The lock is held.
func (b *Breaker) followOverride(p *regime, at time.Duration, why string) {
	o := b.overrideInEffect(b.rareSoFar().own, p.rules)
	switch {
	case o.state == "" && p.under != nil:
		b.resume(p, p.under.stayAt(at), at, why)
	case o.state != "" && o.state != p.state:
		next := p.next(endlessStay(o.state, at))
		next.under, next.forcedFor = cmp.Or(p.under, p), o.reason
		next.complete(b)
		b.publish(next, Change{From: p.state, To: o.state, Reason: why, origin: byHand})
	case o.state != "" && o.reason != p.forcedFor:
		next := *p
		next.forcedFor = o.reason
		next.refusal = next.newRefusal(b)
		b.regime.Store(&next)
	}
}

// Force sets an override: ForcedOpen, ForcedClosed, Disabled or Shadow. It replaces an override
// that Force has set, and lies over Config.Force. The reason, of at most 1,024 bytes, is for
// refused callers and Change.Reason. Default "forced". The breaker keeps the state underneath,
// whose cooldown runs on, until Release. Force panics if s is not an override or the reason is too
// long.
func (b *Breaker) Force(s State, reason string) { b.forceAt(time.Now(), s, reason) }

// forceAt is Force at the time t.
func (b *Breaker) forceAt(t time.Time, s State, reason string) {
	if !s.isOverride() {
		panic(fmt.Sprintf("breaker: %q is not an override", s))
	}
	if len(reason) > maxReason {
		panic(fmt.Sprintf("breaker: the reason has %d bytes, must have at most %d", len(reason), maxReason))
	}
	reason = cmp.Or(reason, forcedReason)
	b.setOverride(t, override{state: s, reason: reason}, reason)
}

// setOverride replaces the override that was set for the breaker by hand, and returns the version.
// why is the reason of the transition.
func (b *Breaker) setOverride(t time.Time, o override, why string) (version uint64) {
	b.changeUnderLock(t, func(b *Breaker, p *regime, at time.Duration) {
		o.version = settings.NextVersion()
		b.rareParts().own = o
		b.followOverride(p, at, why)
	})
	return o.version
}

// Release lifts the override that Force has set. If Config.Force is set, that override is in effect
// then. Otherwise the breaker is in the state that it would be in without the override: the
// override does not lengthen the cooldown of an open breaker. A half-open breaker starts its probes
// again, and a recovering one begins with the smallest share. A closed breaker judges only calls
// after Release.
func (b *Breaker) Release() { b.releaseAt(time.Now()) }

// releaseAt is Release at the time t.
func (b *Breaker) releaseAt(t time.Time) { b.setOverride(t, override{}, "released") }

// resume ends an override and begins the state underneath. The lock is held.
func (b *Breaker) resume(p *regime, s stay, at time.Duration, reason string) {
	switch s.state {
	case HalfOpen:
		s.until = math.MaxInt64 // HalfOpenTimeout begins with the first probe
	case Recovering:
		s.state = p.rules.afterProbes() // Reconfigure may have switched Recovery off
	default:
	}
	next := p.next(stay{s.state, at, s.until, s.wait})
	next.recovery = p.under.recovery
	next.complete(b)
	b.publish(next, Change{From: p.state, To: s.state, Reason: reason, origin: byHand})
}

// OpenFor opens the breaker for d from now on, whatever its state is. After that it is half-open.
// Under an override OpenFor sets the state underneath. OpenFor(0) ends a cooldown now. A negative d
// counts as 0.
func (b *Breaker) OpenFor(d time.Duration) { b.openForAt(time.Now(), d) }

// openForAt is OpenFor at the time t.
func (b *Breaker) openForAt(t time.Time, d time.Duration) {
	d = max(d, 0)
	b.changeUnderLock(t, func(b *Breaker, p *regime, at time.Duration) {
		b.setStay(p, openStay(at, addClamped(at, d)), fmt.Sprintf("opened by OpenFor for %v", d))
	})
}

// Reset closes the breaker and clears what it is judged by: the window, the consecutive failures
// and the failed rounds of probes. Under an override Reset does this to the state underneath.
// Totals are kept.
func (b *Breaker) Reset() { b.resetAt(time.Now()) }

// resetAt is Reset at the time t.
func (b *Breaker) resetAt(t time.Time) { b.resetFor(t, "reset") }

// resetFor is resetAt with the reason of the change.
func (b *Breaker) resetFor(t time.Time, reason string) {
	b.changeUnderLock(t, func(b *Breaker, p *regime, at time.Duration) {
		b.setStay(p, endlessStay(Closed, at), reason)
	})
}

// setStay enters a state, or makes it the state underneath the override. The lock is held.
func (b *Breaker) setStay(p *regime, s stay, reason string) {
	from := p
	if p.under != nil {
		from = p.under
	}
	next := p.next(s)
	next.recovery = &recovery{reason: reason, rounds: from.rounds, cooldown: next.rules.cooldown(from.rounds)}
	if p.under != nil {
		if next.state == Closed {
			next.rounds = 0
		}
		same := *p
		same.under = next
		b.regime.Store(&same)
		return
	}
	next.complete(b)
	if p.state == s.state { // the state starts again, but that is not a transition
		next.stays.entered = p.stays.orNone().entered
		b.regime.Store(next)
		return
	}
	b.publish(next, Change{From: p.state, To: s.state, Reason: reason, origin: byHand})
}

// changeUnderLock calls f with the phase in effect, under the lock, and delivers the changes.
func (b *Breaker) changeUnderLock(t time.Time, f func(b *Breaker, p *regime, at time.Duration)) {
	if b.member.isUnguarded() {
		return
	}
	at := b.justNow(t)
	b.mu.Lock()
	p := b.advance(at)
	f(b, p, p.latest(at))
	b.mu.Unlock()
	b.deliver()
}
