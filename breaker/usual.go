package breaker

import (
	"sync/atomic"
	"time"
)

// usualDuration estimates the usual duration of a successful call: the median. A call whose own
// deadline was shorter says nothing about the service. See the package comment.
//
// The estimate moves by a small share towards each duration that it is given, as Frugal-1U does
// (Ma, Muthukrishnan, Sandler: Frugal Streaming for Estimating Quantiles, 2013). So one machine
// word is enough to store it.
//
// Durations are sampled, because timing a call needs a reading of the clock at its beginning, which
// a closed breaker otherwise saves. The breaker times calls for a while in three cases: when it is
// created or closes, whenever usualEvery has passed since then, and when the deadline of a call has
// passed. To do so, it replaces its phase with one that times calls.
//
// If a service fails because it becomes slow, its slow answers must not become usual. The calls
// that have a short deadline end before these slow answers arrive, and only these answers would
// teach the estimate that this deadline is too short. So a deadline that counts as a failure stops
// learning, and the estimate that is used is at least usualEvery old.
type usualDuration struct {
	median    atomic.Int64 // the present estimate in nanoseconds; 0 if no call was timed
	candidate atomic.Int64 // an earlier estimate, which is used next
	known     atomic.Int64 // the estimate that is used
	confirmAt atomic.Int64 // the time from which candidate is used
	frozen    atomic.Int64 // the time until which nothing is learned
	needed    atomic.Int64 // the time until which calls are timed
	samples   atomic.Int64 // successes and failures that were timed
}

const (
	// usualSamples is the minimum number of results that are timed. The first ones teach the
	// estimate even while calls fail, because nothing else is known.
	usualSamples = 64
	// usualEvery is the time after which calls are timed again and the estimate is confirmed. It is
	// also the time for which nothing is learned after a deadline that counted as a failure.
	usualEvery = 10 * time.Second
)

// timing says whether the calls of a phase are timed for the usual duration.
type timing struct {
	sampled     bool
	sampledFrom time.Duration // when sampling began; calls of an earlier phase began before that
	sampledTo   int64         // usual.samples when there are enough samples
}

// learnDuration updates the estimate with a call that was timed for it. p is the present phase.
func (b *Breaker) learnDuration(p *phase, o Outcome, took, at time.Duration) {
	u := &b.usual
	n := u.samples.Add(1)
	if o == Success && (n <= usualSamples || int64(at) >= u.frozen.Load()) {
		u.add(int64(took), n)
		u.confirm(int64(at), n)
	}
	if p.sampled && p.state == Closed && n >= p.sampledTo && int64(at) >= u.needed.Load() {
		b.setTiming(false, at)
	}
}

// add moves the estimate towards a duration. n is the number of the sample. If two calls do so at
// the same time, one of them may have no effect.
func (u *usualDuration) add(took, n int64) {
	took = max(took, 1)
	old := u.median.Load()
	step := max(old/32, 1)
	if n <= usualSamples/4 {
		step = max(old/4, 1)
	}
	next := took
	switch {
	case old == 0:
	case took > old:
		next = old + min(step, took-old)
	default:
		next = old - min(step, old-took)
	}
	u.median.CompareAndSwap(old, next)
}

// confirm accepts the candidate estimate if no deadline has counted as a failure for long enough.
// The first samples are used at once.
func (u *usualDuration) confirm(at, n int64) {
	if n <= usualSamples {
		u.known.Store(u.median.Load())
		u.candidate.Store(u.median.Load())
		u.confirmAt.Store(at + int64(usualEvery))
		return
	}
	if due := u.confirmAt.Load(); at >= due && u.confirmAt.CompareAndSwap(due, at+int64(usualEvery)) {
		u.known.Store(u.candidate.Swap(u.median.Load()))
	}
}

// pauseLearning stops learning for a while, and forgets what was learned last.
func (u *usualDuration) pauseLearning(at time.Duration) {
	u.frozen.Store(int64(addClamped(at, usualEvery)))
	known := u.known.Load()
	u.candidate.Store(known)
	u.median.Store(known)
}

// sampleAgain starts to time calls of a closed phase if it is time for new samples.
func (b *Breaker) sampleAgain(p *phase, at time.Duration) {
	if !p.sampled && at-p.sampledFrom >= usualEvery && !p.rules.config.CountDeadlines {
		b.setTiming(true, at)
	}
}

// setTiming replaces a closed phase with one whose calls are timed, or are not.
func (b *Breaker) setTiming(sampled bool, at time.Duration) {
	if !b.mu.TryLock() {
		return // a later call does it
	}
	defer b.mu.Unlock()
	p := b.phase.Load()
	if p.state != Closed || p.sampled == sampled {
		return
	}
	next := *p
	next.sampled = sampled
	if sampled {
		next.sampledFrom, next.sampledTo = p.latest(at), b.usual.samples.Load()+usualSamples
	}
	next.derive(b)
	b.phase.Store(&next)
}

// beginTiming sets the timing of the phase of a new state.
func (p *phase) beginTiming(b *Breaker) {
	p.timing = timing{sampledFrom: p.since}
	behavior := stateMachine[p.state]
	if b.observed == nil && (behavior.results == judgeResults || behavior.results == countResults) {
		p.sampled, p.sampledTo = true, b.usual.samples.Load()+usualSamples
	}
}

// startedBy returns the latest time at which the call can have begun.
func (m *Permit) startedBy(now *phase, at time.Duration) time.Duration {
	switch {
	case m.phase.timed || !m.phase.fast:
		return m.start
	case now.sampled && now.epoch == m.phase.epoch:
		return now.sampledFrom
	}
	return at
}

// mayBeShort reports whether the time to a deadline was, or may have been, shorter than a
// successful call usually takes. The call began at start or earlier.
func (u *usualDuration) mayBeShort(start, deadline time.Duration) bool {
	known := time.Duration(u.known.Load())
	return known > 0 && deadline-start < known
}
