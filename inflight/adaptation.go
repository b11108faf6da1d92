package inflight

import (
	"math"
	"time"
)

// adaptation computes the limit on calls in flight. It has neither a lock nor a clock: advance sets
// the time, and then one of recordEnd, recordLeft, recordIgnored and limitReached records an event.
//
// It has two states. While the service is healthy it raises a limit that is reached, so no call is
// refused. On evidence of congestion it starts to bound the calls: it sets the limit by Little's
// law (see adaptationround.go) until the limit has not been reached for freeAfter.
//
// If callers wait in a queue, it bounds the calls as soon as the limit is reached, without evidence
// of congestion. That delays calls at first but refuses none, and the rounds find the right limit.
//
// The evidence is a cumulative sum (Page, "Continuous Inspection Schemes", 1954) over calls: 1 is
// added for a slow call, 2 for a call that failed late, and 1 is subtracted for any other. So the
// score rises only if most calls are slow, or if more than a third of them fail late. The evidence
// suffices when the score reaches the constant enough. A call is slow if it takes several times the
// usual latency: see usual. A failure is late if the call took longer than twice the usual time, as
// with a timeout. Other failures are left to a breaker. They count only if calls are slow already,
// as when the queue of the service is full. Calls that should have ended but have not are evidence
// too, so that a service that never answers is noticed.
type adaptation struct {
	limit, upper float64
	queued       bool // callers wait in a queue of their own, with a Target
	retired      bool // the limit does not change any more
	usual        usualLatency
	every        float64 // one call in this many is timed

	now         time.Duration
	started     uint64
	inFlight    int
	area        float64       // calls in flight, integrated over time, in ns
	useless     float64       // calls that have ended and say nothing about the service
	lastSuccess time.Duration // when a call last succeeded
	history     history

	bounding bool
	score    float64
	recent   float64 // mean latency of the last few calls, in ns
	round    round
}

const (
	// enough is the score at which the evidence of congestion suffices.
	enough = 10
	// lateFailure is the amount that a late failure adds to the score.
	lateFailure = 2
	// startLimit is the initial limit, and the lower bound of the limit as long as no call fails
	// late: a queue shorter than that does no harm.
	startLimit = 50
	// startLimitQueued is the initial limit if callers wait in a queue.
	startLimitQueued = 20
	// headroom is the factor by which the limit is raised if it is reached without evidence of
	// congestion.
	headroom = 1.25
	// congested times the usual mean is the latency above which there is congestion.
	congested = 3
)

func newAdaptation(upper int, queued bool) adaptation {
	a := adaptation{upper: float64(upper), every: 1, queued: queued}
	a.limit = min(a.lowestUnbound(), a.upper)
	return a
}

// lowestUnbound returns the lower bound of the limit while the calls are not bounded.
func (a *adaptation) lowestUnbound() float64 {
	if a.queued {
		return startLimitQueued
	}
	return startLimit
}

// lowestBound returns the lower bound of the limit while the calls are bounded and no call fails
// late.
func (a *adaptation) lowestBound() float64 {
	if a.queued {
		return few
	}
	return startLimit
}

// targetLatency returns the mean latency that the limit aims at. With a higher target, calls would
// soon be slow. With a lower target, servers would be idle at times because no call waits for them.
// If callers wait for slots in a queue, the servers are not idle, so the target is lower then.
func (a *adaptation) targetLatency() float64 {
	if a.queued {
		return a.usual.slow() / 4
	}
	return a.usual.slow() / 2
}

// wholeLimit returns the limit rounded down, from 1 to upper.
func (a *adaptation) wholeLimit() uint32 { return uint32(a.limit) }

// setUpper changes the upper bound of the limit.
func (a *adaptation) setUpper(upper int) {
	a.upper = float64(upper)
	switch {
	case !a.bounding:
		a.limit = min(max(a.limit, a.lowestUnbound()), a.upper)
	case a.limit > a.upper:
		a.round.trial = noTrial
		a.round.next(a, a.upper)
	}
}

// setEvery sets that one call in n is timed.
func (a *adaptation) setEvery(n float64) {
	if n != a.every {
		a.every = n
		a.round.begin(a)
	}
}

// advance sets the time, the number of calls ever started, and the number in flight.
func (a *adaptation) advance(now time.Duration, started uint64, inFlight int) {
	now, inFlight = max(now, a.now), max(inFlight, 1)
	a.area += float64(inFlight) * float64(now-a.now)
	a.now, a.started, a.inFlight = now, started, inFlight
	a.round.beginMeasuring(a)
	a.history.add(a.now, started, a.inFlight, time.Duration(a.usual.slow()/4))
}

// recordIgnored records that a call has ended whose result says nothing about the service.
func (a *adaptation) recordIgnored() { a.useless += a.every }

// recordCancelled records that a call has ended because its caller cancelled it. Callers may cancel
// for reasons that have nothing to do with the service, and some calls always last until their
// caller cancels them. So the call counts as a late failure, which is evidence of a service that
// hangs, only if it was slow and no other call has succeeded since it began.
func (a *adaptation) recordCancelled(latency time.Duration) {
	if float64(latency) > a.usual.slow() && a.now-latency > a.lastSuccess {
		a.recordEnd(latency, true)
		return
	}
	a.recordIgnored()
}

// recordEnd records that a call has ended. inFlight still includes it.
func (a *adaptation) recordEnd(latency time.Duration, failed bool) {
	l := max(float64(latency), 1)
	late := failed && l > 2*a.usual.healthy
	if !failed {
		a.lastSuccess = a.now
	}
	switch {
	case failed && !a.usual.known():
	case failed && !late:
		a.useless += a.every
		if !a.bounding && a.recent > congested*a.usual.mean {
			a.addEvidence(lateFailure, l)
		}
	case !a.usual.known():
		a.usual.learnFirst(a.now, l)
	case a.bounding:
		a.updateRecent(l)
		a.round.countEnded(a, max(latency, 1), late)
	default:
		a.updateRecent(l)
		a.usual.learn(a.now, l, late)
		a.addEvidence(evidenceWeight(late, l > a.usual.slow()), l)
	}
}

func (a *adaptation) updateRecent(latency float64) { a.recent += 0.1 * (latency - a.recent) }

func evidenceWeight(late, slow bool) float64 {
	switch {
	case late:
		return lateFailure
	case slow:
		return 1
	}
	return -1
}

// addEvidence adds to the score. It starts to bound the calls if the score is enough and the calls
// in flight will take long too. If they will not, the slow calls were slow by chance, or the
// congestion has ended.
func (a *adaptation) addEvidence(weight, latency float64) {
	a.score = min(max(a.score+weight, 0), enough)
	if a.score == enough && a.expectedLatency() > congested*a.usual.mean {
		a.startBounding(latency)
	}
}

// expectedLatency returns the latency that a call in flight will have, by Little's law.
func (a *adaptation) expectedLatency() float64 {
	return float64(a.inFlight) / a.history.endedPerNanosecond(a.now, a.started, a.inFlight)
}

// limitReached is called when the limit is reached.
func (a *adaptation) limitReached() {
	switch {
	case a.bounding:
		a.round.noteLimitReached(a)
	case a.usual.known() && a.history.startedSince(a.now-time.Duration(a.usual.slow()), a.started) < float64(a.inFlight)/2:
		// More than half of the calls in flight should have ended long ago.
		a.startBounding(2 * a.usual.slow())
	case a.queued && a.usual.known():
		a.startBoundingAtLimit()
	default:
		a.limit = min(math.Ceil(a.limit*headroom), a.upper)
	}
}

// history holds a few past moments, so that the calls since then can be counted.
type history struct {
	moments [8]startCount
	last    int
}

// startCount is how many calls had started by a time, and how many were in flight then.
type startCount struct {
	at       time.Duration
	started  uint64
	inFlight int
}

// add remembers a moment, unless it is too soon after the last one.
func (h *history) add(now time.Duration, started uint64, inFlight int, apart time.Duration) {
	if now-h.moments[h.last].at >= apart {
		h.last = (h.last + 1) % len(h.moments)
		h.moments[h.last] = startCount{now, started, inFlight}
	}
}

// startedSince returns how many calls have started since the latest moment before a time, or
// infinity if there is none.
func (h *history) startedSince(t time.Duration, started uint64) float64 {
	for i := range h.moments {
		m := h.moments[(h.last+len(h.moments)-i)%len(h.moments)]
		if m.at <= t {
			return float64(started - m.started)
		}
	}
	return math.Inf(1)
}

// endedPerNanosecond returns the rate at which calls have recently ended, over at least few of them
// if possible.
func (h *history) endedPerNanosecond(now time.Duration, started uint64, inFlight int) float64 {
	const few = 10
	rate := 0.0
	for i := range h.moments {
		m := h.moments[(h.last+len(h.moments)-i)%len(h.moments)]
		if m.at >= now {
			continue
		}
		n := float64(started-m.started) + float64(m.inFlight-inFlight)
		rate = max(n, 1) / float64(now-m.at)
		if n >= few {
			break
		}
	}
	return max(rate, 1/float64(time.Hour))
}
