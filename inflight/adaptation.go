package inflight

import (
	"math"
	"time"
)

// adaptation computes the limit on calls in flight. It has neither a lock nor a clock: advance sets
// the time, and then one of the other methods records an event.
//
// It refuses a call only on evidence that refusing helps. Its rules:
//
//   - Fast calls contradict congestion. In front of an overloaded service all calls wait in one
//     queue, so even the calls that need little work are slow (CoDel looks at the least sojourn for
//     the same reason). A success within twice the median, or within an eighth of the time that its
//     caller allowed, has not waited there, however many others are slow, lost or long.
//   - Slow and late calls are evidence, and so is the service's own word that it is overloaded. The
//     three kinds and the fast calls are summed up in a score: a cumulative sum (Page, "Continuous
//     Inspection Schemes", 1954).
//   - Refusing helps only a call that would have come too late. So a call is slow only if it took
//     half of the time that its caller allowed. The calls in flight must be expected to take as
//     long, by Little's law (Little, 1961): L calls in flight, of which X end per second, take L/X.
//   - The same law says how far: the limit lets in what the service answers in the time that is
//     left. See cut.
//   - Each cut needs evidence of its own, from calls that began after the last one. Each success in
//     good time raises the limit by one call, so it doubles in the time that a call takes.
//   - The bound must not starve itself of evidence: see probe.
//   - A limit that has not been reached for freeAfter bounds nothing, and the bounding ends.
//
// docs/designs.md tells how these rules were found and what they cost.
type adaptation struct {
	limit, upper float64
	queue        time.Duration // the Target of the queue in which callers wait, 0 for none
	retired      bool          // the limit does not change any more
	every        float64       // one call in this many is timed

	now       time.Duration
	started   uint64
	inFlight  int
	history   history
	usual     usualLatency
	patience  float64       // the mean time that callers allow, in ns
	succeeded time.Duration // when a call last succeeded

	score    float64
	evidence evidence // the strongest kind in the score
	bounding bool
	reason   evidence                      // of the first cut
	since    time.Duration                 // the first cut
	cutAt    time.Duration                 // the last cut
	lastUse  time.Duration                 // when the limit was last nearly reached
	first    struct{ young, rate float64 } // at the first cut
	// the calls in flight when the service last said that it is overloaded, 0 if it has not
	fullAt          float64
	deaf, deafUntil time.Duration // how long and until when its word is ignored

	passed      uint64 // the started calls when a call was last seen to pass
	passedAt    time.Duration
	probesSince int // since a call succeeded
}

const (
	// A success within twice the median is fast. At least half of the calls of a healthy service
	// take at most the median, and still do if all calls become up to twice as slow.
	fastAt = 2
	// A call is slow from eight times the median on. If times are exponential, one in 256 takes as
	// long.
	slowAt = 8
	// The weights are those of a test between a healthy service, of whose calls at least half are
	// fast, and a congested one. With them, the score rises only if there are more than four slow
	// calls, or more than two late ones, for each fast one. So the test is not fooled by a service
	// of which a third hangs. A word of the service counts as a slow call: neither has cost its
	// caller all of its time.
	fastWeight, slowWeight, lateWeight = -4, 1, 2
	// enough is the score at which the evidence suffices: ten calls in a row that fail late, or
	// twenty slow ones.
	enough = 20
	// few is the least evidence for a further cut. While few calls are in flight, twice as much as
	// the limit suffices: then each call has had its turn.
	few = 4
	// A caller without a deadline is taken to allow a second, which is about how long a person
	// waits before attention wanders (Miller, 1968). A shorter pause is no reason to refuse calls.
	unstated = time.Second
	// startLimit is the limit at which the bound first looks whether anything succeeds.
	startLimit = 50
	// headroom is the factor by which the limit is raised if it is reached without evidence.
	headroom = 1.25
	// No cut goes below the share minCut, because each estimates the rate of the service from few
	// calls. Each goes to maxCut at least, or it could not be seen whether it helps.
	minCut, maxCut = 0.2, 0.7
	// The cut after the service's own word, which comes at the most calls that it can hold.
	wordCut = 0.9
	// If the limit has not been reached for freeAfter, the calls are no longer bounded.
	freeAfter = 2 * time.Second
)

func newAdaptation(upper int, queue time.Duration) adaptation {
	return adaptation{upper: float64(upper), limit: min(startLimit, float64(upper)), every: 1, queue: queue, patience: float64(unstated)}
}

// begin sets the time from which on calls are known, and the number of calls in flight then.
func (a *adaptation) begin(now time.Duration, started uint64) {
	for i := range a.history.spans {
		a.history.spans[i] = callSpan{from: now, started: started}
	}
	a.usual = usualLatency{from: now, first: started}
	a.now, a.succeeded, a.passedAt = now, now, now
}

// wholeLimit returns the limit rounded down, from 1 to upper.
func (a *adaptation) wholeLimit() uint32 { return uint32(a.limit) }

// setUpper changes the upper bound of the limit.
func (a *adaptation) setUpper(upper int) {
	a.upper = float64(upper)
	if !a.bounding {
		a.limit = max(a.limit, startLimit)
	}
	a.limit = min(a.limit, a.upper)
}

// advance sets the time, the number of calls ever started, and the number in flight.
func (a *adaptation) advance(now time.Duration, started uint64, inFlight int) {
	a.now, a.started, a.inFlight = max(now, a.now), started, max(inFlight, 1)
	a.usual.advance(a.now, started)
	a.history.add(a.now, started, a.silence()/3)
	if started != a.passed {
		a.passed, a.passedAt = started, a.now
	}
	if float64(a.inFlight) >= 0.8*math.Floor(a.limit) {
		a.lastUse = a.now
	} else if a.bounding && a.now-a.lastUse > freeAfter {
		a.stop()
	}
}

// allowedTime returns how long a caller is taken to allow, in ns.
func allowedTime(allowed time.Duration) float64 {
	if allowed <= 0 {
		allowed = unstated
	}
	return float64(allowed)
}

// threshold returns a multiple of the median, or a share of the time that a caller allows if that
// is longer. A caller that may wait in a queue for its Target should not wait in the service for
// more than twice that.
func (a *adaptation) threshold(times, patience, share float64) float64 {
	if a.queue > 0 {
		patience = min(patience, 4*float64(a.queue))
	}
	return max(times*a.usual.median, patience*share)
}

// fast and slow return the latencies below which a call is fast, and above which it is slow.
func (a *adaptation) fast(patience float64) float64 { return a.threshold(fastAt, patience, 1./8) }
func (a *adaptation) slow(patience float64) float64 { return a.threshold(slowAt, patience, 1./2) }

// inTime returns the latency at which the limit aims: half of what is slow.
func (a *adaptation) inTime(patience float64) float64 { return a.threshold(slowAt/2, patience, 1./4) }

// silence returns the time after which a call should have succeeded.
func (a *adaptation) silence() time.Duration {
	return time.Duration(max(slowAt*a.usual.median, a.patience/2))
}

// recordIgnored records the end of a call whose result says nothing about the service.
func (a *adaptation) recordIgnored(latency time.Duration) { a.end(latency, 0) }

// end counts a call that has ended, and says something about the service if useful is not 0.
func (a *adaptation) end(latency time.Duration, useful float64) {
	a.history.ended(a.now-latency, a.every, useful)
	a.usual.end(a.now - latency)
	a.inFlight--
}

// recordCancelled records that a call has ended because its caller cancelled it. Callers may cancel
// for reasons that have nothing to do with the service, and some calls always last until their
// caller cancels them. So the call counts as a late failure, which is evidence of a service that
// hangs, only if it was slow and no other call has succeeded since it began.
func (a *adaptation) recordCancelled(latency time.Duration) {
	if float64(latency) > a.slow(a.patience) && a.now-latency > a.succeeded {
		a.recordFailure(latency, latency)
		return
	}
	a.recordIgnored(latency)
}

// recordSuccess records that a call has succeeded. Its caller allowed it a time, 0 if that is not
// known. inFlight still includes it.
func (a *adaptation) recordSuccess(latency, allowed time.Duration) {
	l, patience := max(float64(latency), 1), allowedTime(allowed)
	a.patience += (patience - a.patience) / 50
	a.succeeded, a.probesSince = a.now, 0
	if !a.bounding && a.score < enough/2 {
		a.usual.learn(a.now, l, a.now-latency)
	}
	a.end(latency, a.every)
	if a.now-latency < a.cutAt {
		return
	}
	if a.bounding && a.lastUse == a.now && l < a.inTime(patience) {
		a.raise()
	}
	switch {
	case l < a.fast(patience):
		if a.score = max(a.score+fastWeight, 0); a.score == 0 {
			a.evidence = none
		}
	case a.usual.known() && l > a.slow(patience):
		a.addEvidence(slowWeight, slowCalls)
	}
}

// raise raises the limit after a success in good time. From the number on at which the service has
// said that it is overloaded, the limit is only raised by one call in the time that a call takes,
// as in TCP (Jacobson, "Congestion Avoidance and Control", 1988).
func (a *adaptation) raise() {
	by := a.every
	if a.limit >= wordCut*a.fullAt && a.fullAt > 0 {
		by /= a.limit
	}
	a.limit = min(a.limit+by, a.upper)
}

// recordFailure records that a call has failed. It is late if it took as long as its caller
// allowed. Other failures are left to a breaker, and so are deadlines that no usual call could
// meet.
func (a *adaptation) recordFailure(latency, allowed time.Duration) {
	l, patience := max(float64(latency), 1), allowedTime(allowed)
	if !a.usual.known() || l <= fastAt*a.usual.median || l < min(patience, a.slow(patience)) {
		a.recordIgnored(latency)
		return
	}
	a.patience += (patience - a.patience) / 50
	a.end(latency, a.every)
	switch began := a.now - latency; {
	case began < a.cutAt:
	case began > a.succeeded: // nothing contradicts it
		a.addEvidence(2*lateWeight, lateFailures)
	default:
		a.addEvidence(lateWeight, lateFailures)
	}
}

// recordOverloaded records that the service has refused a call because it is overloaded.
func (a *adaptation) recordOverloaded(latency time.Duration) {
	a.recordIgnored(latency)
	if a.usual.known() && a.now-latency >= a.cutAt && a.now >= a.deafUntil {
		a.addEvidence(slowWeight, words)
	}
}

// obeyWord lowers the limit to a little less than the number of calls in flight at which the
// service says that it is overloaded. If it has one queue, it is silent then. If it says so as
// often, it means something else, such as a quota, one of several hosts, or other clients. Then a
// lower limit does not help, and its word is ignored for a minute, and for twice as long each time.
func (a *adaptation) obeyWord(young float64) {
	if a.fullAt == 0 || young > (1+wordCut)/2*a.fullAt {
		a.fullAt = young
		a.cutTo(wordCut * young)
		return
	}
	a.stop()
	a.deaf = min(max(2*a.deaf, memory), time.Hour)
	a.deafUntil = a.now + a.deaf
}

// addEvidence adds to the score, and cuts the limit if the evidence suffices and the calls in
// flight will take long too. If they will not, the slow calls were slow by chance, or the
// congestion has ended.
func (a *adaptation) addEvidence(weight float64, of evidence) {
	need := float64(enough)
	if a.bounding {
		need = min(max(2*a.limit, few), enough)
	}
	a.score = min(a.score+weight, need)
	a.evidence = max(a.evidence, of)
	if a.score < need {
		return
	}
	rate, young := a.rate(), a.young()
	switch {
	case a.evidence == words:
		a.obeyWord(young)
	case a.evidence == slowCalls && a.isUseless(rate, young):
		a.stop()
		a.usual = usualLatency{from: a.now, first: a.started}
	case young > rate*a.slow(a.patience):
		aim := a.inTime(a.patience)
		if a.evidence == slowCalls { // no call was late, so there is time until calls are slow
			aim = max(aim, a.threshold(0, a.patience, 1./2))
		}
		a.cut(rate * aim)
	}
}

// isUseless reports whether the bound has not helped: the calls are still slow although much fewer
// are in flight, and fewer calls end in proportion. So they do not wait for each other, and what
// they take is the usual latency now.
func (a *adaptation) isUseless(rate, young float64) bool {
	share := young / a.first.young
	return a.bounding && share < 0.3 && rate < a.first.rate*math.Sqrt(share)
}

// stop ends the bounding.
func (a *adaptation) stop() {
	a.bounding, a.cutAt, a.score, a.fullAt = false, 0, 0, 0
	a.limit = min(max(a.limit, startLimit), a.upper)
}

// limitReached is called when the limit is reached.
func (a *adaptation) limitReached() {
	switch {
	case a.bounding:
		a.probe()
	case a.usual.known() && a.unanswered() >= enough:
		a.evidence = silence
		a.cut(a.rate() * a.inTime(a.patience))
	default:
		a.limit = min(math.Ceil(a.limit*headroom), a.upper)
	}
}

// unanswered returns how many calls should have succeeded, if none has succeeded since they began.
func (a *adaptation) unanswered() float64 {
	if a.now-a.succeeded <= a.silence() {
		return 0
	}
	return a.history.younger(a.succeeded, a.started, a.inFlight) - a.history.younger(a.now-a.silence(), a.started, a.inFlight)
}

// probe allows one more call than are in flight if none has passed for twice as long as callers
// allow, and for twice as long again each time. Otherwise calls that never end would hold all slots
// for ever, and no other call could show that the service is well.
func (a *adaptation) probe() {
	if a.now >= a.probeAt() {
		a.probesSince++
		a.passedAt = a.now
		a.limit = min(max(a.limit, float64(a.inFlight+1)), a.upper)
	}
}

func (a *adaptation) probeAt() time.Duration {
	wait := 4 * float64(a.silence()) * math.Exp2(float64(min(a.probesSince, 30)))
	return a.passedAt + time.Duration(min(wait, float64(time.Hour)))
}

// rate returns how many calls end per nanosecond, over as many as are in flight if possible:
// Little's law needs a mean over at least the time that a call takes.
func (a *adaptation) rate() float64 { return a.history.rate(a.now, max(50, float64(a.inFlight))) }

// young returns how many calls in flight are not older than the evidence, with the one that has
// just ended. Streams and hung calls are older. They say nothing about the calls that come, and the
// limit leaves room for them.
func (a *adaptation) young() float64 {
	return a.history.younger(a.now-3*a.silence(), a.started, a.inFlight) + 1
}

// cut lowers the limit on calls that are not older than the evidence to about a number.
func (a *adaptation) cut(limit float64) {
	young := a.young()
	a.cutTo(min(max(limit, minCut*young), maxCut*young))
}

func (a *adaptation) cutTo(limit float64) {
	young := a.young()
	old := max(float64(a.inFlight+1)-young, 0)
	a.limit = min(max(old+limit, 1), a.upper)
	if !a.bounding {
		a.first.young, a.first.rate = young, a.rate()
		a.bounding, a.reason, a.since, a.lastUse = true, a.evidence, a.now, a.now
	}
	a.score, a.evidence, a.cutAt, a.passedAt = 0, none, a.now, a.now
}
