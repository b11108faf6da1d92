package inflight

import (
	"math"
	"time"
)

// adaptation finds the bound on calls in flight. It has neither a lock nor a clock: tick tells it
// the time, and then ended or full what happened.
//
// It has two states. As long as nothing is wrong it refuses nothing: a limit that is reached is
// raised. It goes on to bound the calls when there is evidence of congestion, and bounds them by
// Little's law (see adaptationround.go) until the bound has not been reached for freeAfter.
//
// If callers wait in a queue, it bounds the calls as soon as the limit is reached, since that refuses
// none at first, and the rounds find the limit from there.
//
// The evidence is a cumulative sum (Page, "Continuous Inspection Schemes", 1954) over calls: 1 is
// added for a slow call, 2 for a call that failed late, and 1 is subtracted for any other. So it
// takes a majority of slow calls, or a third of failed ones, and enough of them. A call is slow if
// it takes several times as long as on a good day: see usual. A failure is late if the call took longer than twice
// the usual time, which is how timeouts look; other failures are the business of a breaker, unless
// calls are slow already, as with a full queue. Calls that should have ended and have not are
// evidence too, so that a service that never answers is noticed.
type adaptation struct {
	limit, most float64
	queued      bool // callers wait in a queue of their own, with a Target
	usual       usual
	every       float64 // one call in so many is timed

	now      time.Duration
	started  uint64
	inFlight int
	area     float64       // calls in flight, integrated over time, in ns
	useless  float64       // calls that have ended and teach nothing
	wellAt   time.Duration // when a call last ended well
	history  history

	bounding bool
	score    float64
	recent   float64 // mean latency of the last few calls, in ns
	round    round
}

const (
	// enough is the score at which the evidence suffices.
	enough = 10
	// lateFailure is what a late failure adds to the score.
	lateFailure = 2
	// easy is the limit at first, and the least limit as long as no call fails late: a shorter
	// queue than that does no harm.
	easy = 50
	// firstQueued is the limit at first if callers wait in a queue.
	firstQueued = 20
	// headroom is the factor by which a limit without evidence is raised.
	headroom = 1.25
	// congested is how many times the usual mean the latency is at least when there is congestion.
	congested = 3
)

func newAdaptation(most int, queued bool) adaptation {
	a := adaptation{most: float64(most), every: 1, queued: queued}
	a.limit = min(a.first(), a.most)
	return a
}

// first returns the least limit when the calls are not bounded.
func (a *adaptation) first() float64 {
	if a.queued {
		return firstQueued
	}
	return easy
}

// least returns the least limit as long as no call fails late.
func (a *adaptation) least() float64 {
	if a.queued {
		return few
	}
	return easy
}

// target returns the mean latency that a bound aims at. More would be slow soon. Less would keep
// servers idle for want of a queue, unless callers wait for the slots anyway.
func (a *adaptation) target() float64 {
	if a.queued {
		return a.usual.slow() / 4
	}
	return a.usual.slow() / 2
}

// whole returns the limit, from 1 to most.
func (a *adaptation) whole() uint32 { return uint32(a.limit) }

// setMost changes the highest limit.
func (a *adaptation) setMost(most int) {
	a.most = float64(most)
	switch {
	case !a.bounding:
		a.limit = min(max(a.limit, a.first()), a.most)
	case a.limit > a.most:
		a.round.trial = noTrial
		a.round.next(a, a.most)
	}
}

// setEvery says that one call in n is timed.
func (a *adaptation) setEvery(n float64) {
	if n != a.every {
		a.every = n
		a.round.begin(a)
	}
}

// tick tells the time, how many calls have started since ever, and how many are in flight.
func (a *adaptation) tick(now time.Duration, started uint64, inFlight int) {
	now, inFlight = max(now, a.now), max(inFlight, 1)
	a.area += float64(inFlight) * float64(now-a.now)
	a.now, a.started, a.inFlight = now, started, inFlight
	a.round.settle(a)
	a.history.add(a.now, started, a.inFlight, time.Duration(a.usual.slow()/4))
}

// ignored tells of a call that has just ended and says nothing about the service.
func (a *adaptation) ignored() { a.useless += a.every }

// left tells of a call that has just ended because its caller has left. Callers leave for reasons of
// their own, and some calls always last until then. So it is evidence of a service that hangs, like a
// late failure, only if the call was slow and none has ended well since it began.
func (a *adaptation) left(latency time.Duration) {
	if float64(latency) > a.usual.slow() && a.now-latency > a.wellAt {
		a.ended(latency, true)
		return
	}
	a.ignored()
}

// ended tells of a call that has just ended. It is still in inFlight.
func (a *adaptation) ended(latency time.Duration, failed bool) {
	l := max(float64(latency), 1)
	late := failed && l > 2*a.usual.healthy
	if !failed {
		a.wellAt = a.now
	}
	switch {
	case failed && !a.usual.known():
	case failed && !late:
		a.useless += a.every
		if !a.bounding && a.recent > congested*a.usual.mean {
			a.evidence(lateFailure, l)
		}
	case !a.usual.known():
		a.usual.first(a.now, l)
	case a.bounding:
		a.seen(l)
		a.round.ended(a, max(latency, 1), late)
	default:
		a.seen(l)
		a.usual.learn(a.now, l, late)
		a.evidence(weight(late, l > a.usual.slow()), l)
	}
}

func (a *adaptation) seen(latency float64) { a.recent += 0.1 * (latency - a.recent) }

func weight(late, slow bool) float64 {
	switch {
	case late:
		return lateFailure
	case slow:
		return 1
	}
	return -1
}

// evidence adds to the score, and bounds the calls if it suffices and the calls in flight will take
// long too. If not, the slow calls were slow by chance, or are over.
func (a *adaptation) evidence(weight, latency float64) {
	a.score = min(max(a.score+weight, 0), enough)
	if a.score == enough && a.expected() > congested*a.usual.mean {
		a.bind(latency)
	}
}

// expected returns the latency that a call in flight will have, by Little's law.
func (a *adaptation) expected() float64 {
	return float64(a.inFlight) / a.history.endedPerNanosecond(a.now, a.started, a.inFlight)
}

// full is asked when the limit is reached.
func (a *adaptation) full() {
	switch {
	case a.bounding:
		a.round.reached(a)
	case a.usual.known() && a.history.startedSince(a.now-time.Duration(a.usual.slow()), a.started) < float64(a.inFlight)/2:
		// More than half of the calls in flight should have ended long ago.
		a.bind(2 * a.usual.slow())
	case a.queued && a.usual.known():
		a.boundAsIs()
	default:
		a.limit = min(math.Ceil(a.limit*headroom), a.most)
	}
}

// history are a few past moments, so that the calls since then can be counted.
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

// endedPerNanosecond returns the rate at which calls have ended of late, over at least few of them
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
