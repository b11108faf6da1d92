package breaker_test

import (
	"fmt"
	"slices"
	"time"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/window"
)

// modelRamp is the model's state of a recovering breaker.
type modelRamp struct {
	share        float64 // of the calls that pass
	skipped      int     // calls refused since the last that passed
	passedAt     time.Duration
	calls        []*modelCall  // all that passed
	results      modelResults  // in the order in which they came
	counted      *modelBreaker // counts their results
	round        int           // the index of the first call since the share last changed
	trusted      int           // the index of the first call since the share last fell
	good, failed time.Duration // when a round was last good, and when one last failed
}

const modelLeastShare = 1.0 / 8

// afterProbes is the state after good probes.
func (m *modelBreaker) afterProbes() breaker.State {
	if m.config.Recovery == 0 {
		return breaker.Closed
	}
	return breaker.Recovering
}

func (m *modelBreaker) rampPasses(t time.Duration) bool {
	return float64(m.ramp.skipped+1)*m.ramp.share >= 1 || t-m.ramp.passedAt >= time.Second
}

func (m *modelBreaker) rampRefuse() { m.ramp.skipped++ }

func (m *modelBreaker) rampPass(c *modelCall, t time.Duration) {
	r := &m.ramp
	r.skipped, r.passedAt = 0, max(r.passedAt, t)
	c.timed, c.passed = true, r.passedAt
	r.calls = append(r.calls, c)
}

// rampAdvance closes a breaker that lets all calls pass, or doubles the share if the round has no
// verdict ProbeTimeout after its first call.
func (m *modelBreaker) rampAdvance(t time.Duration) {
	r := &m.ramp
	switch round := r.calls[r.round:]; {
	case m.stay.state != breaker.Recovering:
	case r.share == 1 && t-r.failed >= m.config.Recovery:
		s := m.stay
		s.state, s.since, s.until = breaker.Closed, m.latest(t), modelNever
		m.enter(s, "calls", fmt.Sprintf("all calls pass and no round of them failed for %v", m.config.Recovery), m.countsAt(t))
	case r.share < 1 && len(round) > 0 && t-round[0].passed >= m.config.ProbeTimeout:
		m.overdue++
		m.rampGrow()
	}
}

func (m *modelBreaker) rampGrow() { m.ramp.share, m.ramp.round = 2*m.ramp.share, len(m.ramp.calls) }

// batch returns the results of calls in the order in which they came, and how many of the calls are
// in flight and passed before one that has ended.
func (m *modelBreaker) batch(calls []*modelCall) (in modelResults, pending int64) {
	for _, r := range m.ramp.results {
		if slices.Contains(calls, r.call) {
			in = append(in, r)
		}
	}
	return in, modelPending(calls, func(c *modelCall) bool { return c.used })
}

func (m *modelBreaker) rampResult(c *modelCall, t time.Duration, r modelResult) {
	if !r.isJudged() {
		return
	}
	m.ramp.results = append(m.ramp.results, r)
	all := m.ramp.share == 1
	if calls := m.ramp.calls[m.ramp.trusted:]; slices.Contains(calls, c) {
		m.rampJudgeAll(calls, t, r)
	}
	if !all && slices.Contains(m.ramp.calls[m.ramp.round:], c) {
		m.rampJudge(t)
	}
}

// rampJudgeAll judges the results of all calls since the share last fell, as a closed breaker
// would.
func (m *modelBreaker) rampJudgeAll(calls []*modelCall, t time.Duration, r modelResult) {
	k, all := &m.config, m.ramp.counted
	_, pending := m.batch(calls)
	all.config = *k
	all.addResult(t, r)
	if k.FailureRun != breaker.Off {
		m.run = append(m.run, r)
	}
	c := all.countsAt(t)
	_, run := m.run.trippedBy(k, c, pending)
	n := int64(k.ConsecutiveFailures)
	failed := m.rateReached(c, pending) != "" || run != "" || r.outcome == breaker.Failure && n > 0 && all.streak >= n
	if failed && m.ramp.share == 1 {
		m.rampFail(t, nil)
	}
}

// rampJudge judges a round.
func (m *modelBreaker) rampJudge(t time.Duration) {
	rs, pending := m.batch(m.ramp.calls[m.ramp.round:])
	switch failed, decided := m.verdict(modelCount(rs, window.Counts{}), pending); {
	case len(rs) == 0 || !decided:
	case failed:
		m.rampFail(t, rs)
	default:
		m.ramp.good = max(m.ramp.good, t)
		m.rampGrow()
	}
}

// verdict reports whether a rate is reached if all pending calls succeed, and whether it is the
// same if all of them fail.
func (m *modelBreaker) verdict(c window.Counts, pending int64) (failed, decided bool) {
	limit, all := m.config.FailureRate, c.Calls()+pending
	if limit == breaker.Off {
		limit = 0.5
	}
	reached := func(more int64) bool {
		return modelReached(c.Failures+more, all, limit) || modelReached(c.Slow+more, all, m.config.SlowRate)
	}
	return reached(0), reached(0) == reached(pending)
}

func (m *modelBreaker) rampFail(t time.Duration, rs modelResults) {
	r, recovery := &m.ramp, m.config.Recovery
	relapsed := r.share == modelLeastShare && t-r.good >= recovery
	r.failed, r.share = max(r.failed, t), max(r.share/2, modelLeastShare)
	r.round, r.trusted = len(r.calls), len(r.calls)
	r.counted.from, r.counted.streak, m.run = len(r.counted.results), 0, nil
	if relapsed {
		c := modelCount(rs, window.Counts{})
		for _, x := range rs {
			c.ConsecutiveFailures++
			if x.outcome == breaker.Success {
				c.ConsecutiveFailures = 0
			}
		}
		m.open(t, "calls", fmt.Sprintf("all rounds of calls failed for %v: %d of the last %d failed", recovery, c.Failures, c.Calls()), c)
	}
}
