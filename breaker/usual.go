package breaker

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// usualDuration is the median duration of a successful call. A call whose own deadline was shorter
// says nothing about the service. See docs/breaker.md.
//
// The breaker learns it from cohorts: calls that began one after the other, whatever their results
// are and whenever they end. A sample of calls in the order in which they end would have too many
// short ones. The calls of a cohort that are still running, or were ended by their deadline, would
// have succeeded later or never. So the median is that of Kaplan and Meier (Nonparametric
// Estimation from Incomplete Observations, 1958).
//
// Timing a call needs a reading of the clock at its beginning, which a closed breaker otherwise
// saves. So it times calls only for a while: when it is created or closes, every usualEvery, and
// for usualEvery after a deadline has passed or two calls in a row have failed. To do so, it
// publishes a regime whose calls are sampled.
//
// If a service fails because it becomes slow, its slow answers must not become usual. So a new
// median is not used if a deadline counted as a failure since its cohort began.
type usualDuration struct {
	cohort  atomic.Pointer[cohort]
	known   atomic.Int64 // the median in nanoseconds, 0 if nothing is known, or noMedian
	knownAt atomic.Int64 // when its cohort was complete
	counted atomic.Int64 // when a deadline last counted as a failure
	needed  atomic.Int64 // the time until which calls are sampled
}

// noMedian says that less than half of the calls of a cohort succeeded, whatever time they had.
const noMedian = -1

const (
	// cohortSize is the number of calls whose median is estimated. Where calls are rare, the calls
	// of cohortSpan are enough if they are a quarter of that.
	cohortSize = 64
	cohortSpan = 20 * time.Second
	// usualEvery is the time after which calls are sampled again.
	usualEvery = 10 * time.Second
	// longestUsual is how long a median is used although deadlines count as failures, and how long
	// the calls of a cohort may take.
	longestUsual = 5 * time.Minute
)

// cohort holds calls that began one after the other.
type cohort struct {
	since time.Duration

	mu    sync.Mutex
	calls []cohortCall
}

type cohortCall struct {
	start time.Duration
	took  time.Duration // 0 while the call runs, and negative if it did not succeed
}

// begin returns the number of a call in the cohort, or 0 if the cohort is complete.
func (c *cohort) begin(at time.Duration) (member uint8) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.isComplete(at) {
		c.calls = append(c.calls, cohortCall{start: at})
		member = uint8(len(c.calls)) //nolint:gosec // at most cohortSize
	}
	return member
}

// isComplete reports whether the cohort has enough calls. The lock is held.
func (c *cohort) isComplete(at time.Duration) bool {
	n := len(c.calls)
	return n == cohortSize || n >= cohortSize/4 && at-c.since >= cohortSpan
}

// end ends a call, whose number is 0 if it is not in the cohort. decided reports that the cohort is
// complete, and that its median is known or will not be known in time, when it is 0.
func (c *cohort) end(member uint8, o Outcome, took, at time.Duration) (median time.Duration, decided bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if took = max(took, 1); o != Success {
		took = -took
	}
	if member > 0 {
		c.calls[member-1].took = took
	}
	tooOld := at-c.since >= longestUsual
	if !c.isComplete(at) || member == 0 && !tooOld {
		return 0, false
	}
	median = c.median(at)
	return median, median != 0 || tooOld
}

// median returns the median, or noMedian if all calls have ended and too few have succeeded, or 0
// if that is not known yet. The lock is held.
func (c *cohort) median(at time.Duration) time.Duration {
	running := false
	all := slices.Clone(c.calls)
	for i := range all {
		if all[i].took == 0 {
			running = true
			all[i].took = min(all[i].start-at, -1)
		}
	}
	slices.SortFunc(all, func(a, b cohortCall) int { // of equal durations, successes come first
		return cmp.Or(cmp.Compare(max(a.took, -a.took), max(b.took, -b.took)), cmp.Compare(b.took, a.took))
	})
	longer := 1.0 // the share of the calls that take longer
	for i, d := range all {
		if d.took > 0 {
			longer *= 1 - 1/float64(len(all)-i)
		}
		if longer < 0.5+1e-9 {
			return d.took
		}
	}
	if running {
		return 0
	}
	return noMedian
}

// sample numbers the calls of a phase in the order in which they begin. So it is known how many
// calls are in flight that began before one that has ended already.
type sample struct {
	cohort       *cohort
	begun, ended atomic.Int64
	newest       atomic.Int64 // the highest number of a call that has ended
}

// pending returns the number of calls in flight that began before one that has ended.
func (s *sample) pending() int64 {
	if s == nil {
		return 0
	}
	return max(s.newest.Load()-s.ended.Load(), 0)
}

// endSampled counts the end of a sampled call, and learns from its duration.
func (b *Breaker) endSampled(m *Permit, o Outcome, at time.Duration) {
	s, u := m.issuer.sample, &b.usual
	for old := s.newest.Load(); m.number > old && !s.newest.CompareAndSwap(old, m.number); {
		old = s.newest.Load()
	}
	s.ended.Add(1)
	present := u.cohort.Load() == s.cohort
	if median, decided := s.cohort.end(m.cohortNumber, o, at-m.start, at); present && decided && u.cohort.CompareAndSwap(s.cohort, nil) {
		u.learn(s.cohort, median, at)
		present = false
	}
	if !present {
		b.setSampling(b.regime.Load().latest(at) < time.Duration(u.needed.Load()), at)
	}
}

// learn uses the median of a cohort, unless a deadline counted as a failure since the cohort began.
// If the cohort has none, a known median stays.
func (u *usualDuration) learn(c *cohort, median, at time.Duration) {
	slowed := u.counted.Load() >= int64(c.since) && int64(at)-u.knownAt.Load() < int64(longestUsual)
	if median == 0 || u.known.Load() > 0 && (median == noMedian || slowed) {
		return
	}
	u.known.Store(int64(median))
	u.knownAt.Store(int64(at))
}

// sampleAgain samples the calls of a closed phase if it is time to, or if failures have begun: then
// it will matter which calls began before them.
func (b *Breaker) sampleAgain(p *regime, at time.Duration, streak int64) {
	if p.sample == nil && (at-p.sampledFrom >= usualEvery || streak == 2 && p.runs) {
		b.setSampling(true, at)
	}
}

// setSampling begins a sample if the present one is complete or there is none, or ends the sample
// of a closed phase.
func (b *Breaker) setSampling(on bool, at time.Duration) {
	if !b.mu.TryLock() {
		return // a later call does it
	}
	defer b.mu.Unlock()
	p := b.regime.Load()
	if p.sample == nil && (!on || p.state != Closed) || p.sample != nil && p.sample.cohort == b.usual.cohort.Load() {
		return
	}
	next := *p
	if next.sample = nil; on || p.state != Closed {
		next.timing = b.newTiming(p.latest(at))
	}
	next.earlier = cmp.Or(p.sample, p.earlier)
	next.derive(b)
	b.regime.Store(&next)
}

// timing says whether the calls of a phase are sampled.
type timing struct {
	sample      *sample       // nil if they are not
	earlier     *sample       // the sample before, whose calls may still be in flight
	sampledFrom time.Duration // when the latest sample began
}

// newTiming begins a sample. A cohort that is not complete continues.
func (b *Breaker) newTiming(at time.Duration) timing {
	c := b.usual.cohort.Load()
	if c == nil {
		c = &cohort{since: at}
		b.usual.cohort.Store(c)
	}
	return timing{sample: &sample{cohort: c}, sampledFrom: at}
}

// startedBy returns the latest time at which the call can have begun.
func (m *Permit) startedBy(now *regime, at time.Duration) time.Duration {
	switch {
	case m.issuer.timed || !m.issuer.fast:
		return m.start
	case now.sample != nil && now.generation == m.issuer.generation:
		return now.sampledFrom
	}
	return at
}

// mayBeShort reports whether the time to a deadline was, or may have been, shorter than a
// successful call usually takes. The call began at start or earlier and ends now. While no median
// is known, the calls so far give an estimate. If they give none, the end of a call beside others
// is no evidence.
func (u *usualDuration) mayBeShort(start, deadline time.Duration, s *sample, at time.Duration) bool {
	known := time.Duration(u.known.Load())
	if known == 0 && s != nil {
		s.cohort.mu.Lock()
		known = s.cohort.median(at)
		s.cohort.mu.Unlock()
		if known <= 0 {
			return s.begun.Load()-s.ended.Load() > 1
		}
	}
	return deadline-start < known
}
