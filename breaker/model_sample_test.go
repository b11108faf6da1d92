package breaker_test

import (
	"math"
	"slices"
	"time"

	"github.com/weir-go/weir/breaker"
)

// modelUsual is what a breaker and its shadow learn about the durations of calls.
type modelUsual struct{ cohort *modelCohort }

// modelCohort is calls that began one after the other, of which the median is wanted.
type modelCohort struct {
	since time.Duration
	calls []*modelCall
}

// modelSample is the calls of one sample, in the order in which they began.
type modelSample struct {
	cohort *modelCohort
	calls  []*modelCall
}

// samples reports whether calls are sampled in the present state.
func (m *modelBreaker) samples() bool {
	return slices.Contains([]breaker.State{breaker.Closed, breaker.HalfOpen, breaker.Recovering, breaker.ForcedClosed}, m.stay.state)
}

func (m *modelBreaker) beginSample(t time.Duration) {
	if m.usual.cohort == nil {
		m.usual.cohort = &modelCohort{since: t}
	}
	m.sample, m.sampledFrom = &modelSample{cohort: m.usual.cohort}, t
}

// addToSample counts a call that begins in the sample, and in its cohort unless that is complete.
func (m *modelBreaker) addToSample(c *modelCall, t time.Duration) {
	if c.sample = m.sample; c.sample == nil {
		return
	}
	c.sample.calls = append(c.sample.calls, c)
	if h := c.sample.cohort; !h.isComplete(t) {
		c.cohort, h.calls = h, append(h.calls, c)
	}
}

func (h *modelCohort) isComplete(t time.Duration) bool {
	return len(h.calls) == 64 || len(h.calls) >= 16 && t-h.since >= 20*time.Second
}

// endSampled ends the cohort if the median of its calls is known, if there is none, or if it lasts
// for five minutes.
func (m *modelBreaker) endSampled(c *modelCall, t time.Duration, o breaker.Outcome) {
	if c.sample == nil {
		return
	}
	h := c.sample.cohort
	c.took, c.succeeded = max(t-c.start, 1), o == breaker.Success
	if present := m.usual.cohort == h; present {
		old := t-h.since >= 5*time.Minute
		if !h.isComplete(t) || c.cohort == nil && !old || !old && !h.isDecided(t) {
			return
		}
		m.usual.cohort = nil
	}
	m.setSampling(false, t)
}

// isDecided reports whether the estimate of Kaplan and Meier falls to one half, or no call is in
// flight.
func (h *modelCohort) isDecided(t time.Duration) bool {
	running := false
	took := func(c *modelCall) time.Duration {
		if c.took == 0 {
			return max(t-c.start, 1)
		}
		return c.took
	}
	longer, ends := 1.0, []time.Duration{}
	for _, c := range h.calls {
		running = running || c.took == 0
		if c.succeeded && c.took > 0 && !slices.Contains(ends, c.took) {
			ends = append(ends, c.took)
		}
	}
	slices.Sort(ends)
	for _, end := range ends {
		atRisk, ended := 0.0, 0.0
		for _, c := range h.calls {
			if took(c) >= end {
				atRisk++
			}
			if c.succeeded && c.took == end {
				ended++
			}
		}
		longer *= 1 - ended/atRisk
	}
	return !running || longer < 0.5+1e-9
}

// sampleAgain begins a sample ten seconds after the last one, and at the second failure in a row.
func (m *modelBreaker) sampleAgain(t time.Duration, o breaker.Outcome) {
	streak := m.streak
	if o == breaker.Success {
		streak = 0
	}
	if m.sample == nil && (t-m.sampledFrom >= 10*time.Second || streak == 2 && m.config.FailureRun != breaker.Off) {
		m.setSampling(true, t)
	}
}

func (m *modelBreaker) setSampling(on bool, t time.Duration) {
	closed := m.stay.state == breaker.Closed
	if m.sample == nil && (!on || !closed) || m.sample != nil && m.sample.cohort == m.usual.cohort {
		return
	}
	if m.sample != nil {
		m.earlier = m.sample
	}
	m.sample = nil
	if on || !closed {
		m.beginSample(m.latest(t))
	}
}

// pending returns how many calls of the last two samples are in flight and began before one of the
// same sample that has ended. known is false if c is older than the sample.
func (m *modelBreaker) pending(c *modelCall) (n int64, known bool) {
	if m.config.FailureRun == breaker.Off {
		return 0, true
	}
	for _, s := range []*modelSample{m.sample, m.earlier} {
		if s != nil {
			n += modelPending(s.calls, func(c *modelCall) bool { return c.took > 0 })
		}
	}
	return n, m.sample == nil || c.sample != nil
}

// modelPending returns how many calls have not ended, of those before the last one that has.
func modelPending(calls []*modelCall, ended func(*modelCall) bool) (n int64) {
	between := int64(0)
	for _, c := range calls {
		between++
		if ended(c) {
			n, between = n+between-1, 0
		}
	}
	return n
}

// roll notes that the window may have changed since it was last found clean: a closed breaker
// judges the successes in a clean window only now and then.
func (m *modelBreaker) roll(t time.Duration, bad bool) {
	if m.config.LastCalls > 0 {
		return
	}
	if t >= m.rollAt {
		end := (max(m.bucket(t), m.newest) + 1) * int64(m.bucketLength())
		m.clean, m.rollAt = false, min(time.Duration(end), modelAdd(t, time.Second))
	}
	m.clean = m.clean && !bad
}

// markClean notes whether the window has no failure and no slow call, and no run has begun.
func (m *modelBreaker) markClean(t time.Duration) {
	c := m.countsAt(t)
	m.clean = m.config.LastCalls == 0 && c.Failures == 0 && c.Slow == 0 && m.runScore() <= 0
}

// runScore returns the highest score of any number of last calls.
func (m *modelBreaker) runScore() (highest float64) {
	if m.config.FailureRun == breaker.Off {
		return 0
	}
	score := 0.0
	for _, r := range slices.Backward(m.run) {
		if r.outcome == breaker.Failure {
			score++
		} else {
			score -= m.config.FailureRate / (1 - m.config.FailureRate)
		}
		if highest = max(highest, score-1e-6); math.IsInf(score, -1) {
			break
		}
	}
	return highest
}
