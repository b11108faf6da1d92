package inflight

import (
	"math"
	"time"
)

// round is a span of time in which the limit does not change. Only calls that began in the round
// count, since the latency of earlier calls also depends on an earlier limit.
//
// The limit of the next round follows from Little's law (Little, 1961): L calls in flight with a
// latency of W make L/W calls per second. So if calls queue in the service, the limit L·target/W
// makes the latency equal to target. Netflix's gradient2 and Vegas, and TCP BBR, use the same
// relation. They compare the latency with that of a service without load. To measure the latter,
// Envoy's adaptive concurrency has to lower the limit now and then.
//
// A service may also have become slow for reasons other than load. Then a lower limit does not make
// it faster, and only loses throughput. Each cut of the limit shows which is the case. If the
// latency stays nearly the same although the limit is less than half of what it was, the limit is
// doubled for a trial. If the latency stays the same during the trial too, it does not come from
// load, and counts as the usual latency from now on.
type round struct {
	since           time.Duration // when it began
	settled         bool          // no more calls are in flight than the limit
	area, completed float64       // the adaptation's area and completed() when it settled
	// timed calls that have begun and ended in it, and late failures among them
	n, failed float64
	sum       float64       // of the latencies of these calls
	highest   int           // the highest number of calls in flight
	lastHit   time.Duration // when the limit was last reached, in any round
	// before the limit was cut; its limit is 0 if the limit was not cut
	cut            observation
	trial          trial
	beforeDoubling observation // before the limit was doubled
	lastTrial      time.Duration
}

// trial is a step of the test whether the service is slow for reasons other than load. Each step
// takes a round.
type trial int

const (
	noTrial  trial = iota
	before         // measures the latency
	doubling       // doubles the limit, and waits until it has an effect
	after          // measures the latency again
)

// observation is a limit and the mean latency with it.
type observation struct{ limit, latency float64 }

const (
	// A round lasts for twice as many calls as the limit, but for at least few and at most many.
	few, many = 4, 20
	// maxCut and minCut bound the factor of the first cut. minCut bounds the factor of the others.
	maxCut, minCut = 0.4, 0.2
	maxGrowth      = 2.0
	// If the limit has not been reached for freeAfter, the calls are no longer bounded.
	freeAfter = 2 * time.Second
	// trialEvery is the time between trials while the limit is at its lower bound and no call
	// fails.
	trialEvery = 30 * time.Second
	// precise is the number of calls by which a trial measures a latency. The standard deviation of
	// the ratio of two such latencies is then 12 %. A ratio of √2 is three standard deviations away
	// from both 1 and 2.
	precise = 150
)

// startBounding starts to bound the calls, after a call of the given latency.
func (a *adaptation) startBounding(latency float64) {
	inFlight := float64(a.inFlight)
	expected := a.expectedLatency()
	a.bounding, a.score = true, 0
	r := &a.round
	r.lastHit, r.lastTrial = a.now, a.now-trialEvery/2
	r.trial = noTrial
	r.cut = observation{inFlight, expected}
	r.next(a, inFlight*min(max(a.targetLatency()/max(latency, expected), minCut), maxCut))
}

// startBoundingAtLimit starts to bound the calls at the present limit.
func (a *adaptation) startBoundingAtLimit() {
	a.bounding, a.score = true, 0
	r := &a.round
	r.lastHit, r.lastTrial = a.now, a.now-trialEvery/2
	r.trial, r.cut.limit = noTrial, 0
	r.next(a, a.limit)
}

// next begins a round with the given limit.
func (r *round) next(a *adaptation, limit float64) {
	a.limit = min(max(limit, 1), a.upper)
	r.begin(a)
}

func (r *round) begin(a *adaptation) {
	r.since, r.settled = a.now, false
	r.n, r.failed, r.sum, r.highest = 0, 0, 0, 0
	r.beginMeasuring(a)
}

// noteLimitReached notes that the limit was reached.
func (r *round) noteLimitReached(a *adaptation) {
	r.lastHit = a.now
	r.highest = max(r.highest, int(a.wholeLimit()))
}

// countEnded counts a call, and ends the round after enough calls.
func (r *round) countEnded(a *adaptation, latency time.Duration, late bool) {
	r.highest = max(r.highest, a.inFlight)
	a.usual.last = a.now
	began := a.now - latency
	if began < r.since {
		return
	}
	r.n++
	r.sum += float64(latency)
	if late {
		r.failed++
	}
	limit := math.Floor(a.limit)
	failing := r.failed >= 3 && r.failed > (0.1+2*a.usual.late)*r.n
	if !failing && (r.n < max(min(2*limit, many), few) || r.needsMoreCalls(a, limit)) {
		return
	}
	inUse := r.inUse(a)
	if inUse {
		r.lastHit = a.now
	} else if a.now-r.lastHit > freeAfter {
		a.stopBounding()
		return
	}
	r.next(a, limit*r.nextFactor(a, observation{limit, r.latency(a)}, inUse, failing))
}

// needsMoreCalls reports whether a trial needs more calls to measure the latency. A latency up to
// the target needs no trial.
func (r *round) needsMoreCalls(a *adaptation, limit float64) bool {
	return r.trial != noTrial && a.completed()-r.completed < max(limit, precise) && r.latency(a) > a.targetLatency()
}

// stopBounding ends the bounding.
func (a *adaptation) stopBounding() {
	a.bounding = false
	a.round.next(a, max(a.limit, a.lowestUnbound()))
}

// beginMeasuring begins to measure the latency when no more calls are in flight than the limit
// allows.
func (r *round) beginMeasuring(a *adaptation) {
	if !r.settled && float64(a.inFlight) <= a.limit {
		r.settled, r.area, r.completed = true, a.area, a.completed()
	}
}

// completed returns how many calls have ever ended, without those that say nothing about the
// service.
func (a *adaptation) completed() float64 { return float64(a.started) - float64(a.inFlight) - a.useless }

// latency returns the mean latency by Little's law: the calls in flight divided by the calls that
// have ended per time. The mean latency of the calls that began in the round would be too small as
// long as most of them have not ended, because the shortest calls end first. With few calls in
// flight that mean is better, and is used.
func (r *round) latency(a *adaptation) float64 {
	if a.limit <= many/2 || !r.inUse(a) {
		return r.sum / max(r.n, 1)
	}
	return max(a.area-r.area, 1) / max(a.completed()-r.completed+1, 1)
}

// inUse reports whether the calls in flight came close to the limit in this round, so that the
// limit makes a difference.
func (r *round) inUse(a *adaptation) bool { return float64(r.highest) >= 0.8*float64(a.wholeLimit()) }

// nextFactor returns the limit of the next round as a multiple of the limit of this round.
func (r *round) nextFactor(a *adaptation, o observation, inUse, failing bool) float64 {
	f := min(max(a.targetLatency()/o.latency, minCut), maxGrowth)
	switch {
	case failing:
		// The learned usual latency was wrong.
		a.usual.mean = min(a.usual.mean, a.usual.healthy)
		r.cut.limit, r.trial = 0, noTrial
		return min(f, 0.5)
	case r.trial != noTrial && inUse && f < 1:
		return r.continueTrial(a, o)
	case f < 0.9:
		return r.cutFactor(a, o, f)
	}
	r.trial = noTrial
	if f < 1.1 || !inUse {
		return 1
	}
	r.cut.limit = 0
	return f
}

// continueTrial makes the next step of a trial.
func (r *round) continueTrial(a *adaptation, o observation) float64 {
	switch r.trial {
	case before:
		r.beforeDoubling, r.trial = o, doubling
		return maxGrowth
	case doubling:
		r.trial = after
		return 1
	default:
		r.trial = noTrial
		if o.latency < math.Sqrt2*r.beforeDoubling.latency {
			a.usual.mean = o.latency
			return maxGrowth
		}
		return r.beforeDoubling.limit / o.limit
	}
}

// cutFactor returns the factor of a cut, or begins a trial if it seems that cuts do not help.
func (r *round) cutFactor(a *adaptation, o observation, f float64) float64 {
	r.trial = noTrial
	if o.limit <= maxCut*r.cut.limit {
		useless := o.latency > r.cut.latency*math.Sqrt(o.limit/r.cut.limit)
		r.cut.limit = 0
		if useless {
			return r.startTrial(a)
		}
	}
	if r.cut.limit == 0 {
		r.cut = o
	}
	f = max(f, min(1, a.lowestBound()/o.limit))
	if f == 1 && a.now-r.lastTrial > trialEvery {
		return r.startTrial(a)
	}
	return f
}

// startTrial begins a trial with the same limit, unless calls fail or hardly any are allowed.
func (r *round) startTrial(a *adaptation) float64 {
	if r.failed == 0 && a.limit >= few {
		r.trial, r.lastTrial = before, a.now
	}
	return 1
}
