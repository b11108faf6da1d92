package breaker_test

import (
	"fmt"
	"math"
	"time"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/window"
)

// modelRamp is the model's state of a recovering breaker.
type modelRamp struct {
	share        float64 // of the calls that pass
	skipped      int     // calls refused since the last that passed
	passedAt     time.Duration
	round        int
	began        time.Duration // when it began
	passed       int           // calls of the round
	full         time.Duration // when the last call that the round needed passed
	results      []modelResult // of the round
	limited      bool          // a call of the round was refused
	good, failed time.Duration // when the last good and the last failed round ended
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

func (m *modelBreaker) rampRefuse() { m.ramp.skipped, m.ramp.limited = m.ramp.skipped+1, true }

func (m *modelBreaker) rampPass(c *modelCall, t time.Duration) {
	r := &m.ramp
	r.skipped, r.passedAt = 0, max(r.passedAt, t)
	if r.passed++; r.passed <= m.rampSize() {
		r.full = r.passedAt
	}
	c.round, c.timed = r.round, true
}

// rampSize is how many calls a round has.
func (m *modelBreaker) rampSize() int {
	if m.ramp.share == 1 {
		return int(m.minCalls())
	}
	return 1
}

// endOverdue fails a round whose results are missing for too long.
func (m *modelBreaker) endOverdue(t time.Duration) {
	if m.stay.state == breaker.Recovering && m.ramp.passed >= m.rampSize() && t-m.ramp.full >= m.config.ProbeTimeout {
		m.overdue++
		m.rampNextRound(t, true)
	}
}

func (m *modelBreaker) rampResult(c *modelCall, t time.Duration, r modelResult) {
	if r.isJudged() && c.round == m.ramp.round {
		m.ramp.results = append(m.ramp.results, r)
		m.rampJudge(t)
	}
}

// rampJudge ends the round if the missing results cannot change its verdict.
func (m *modelBreaker) rampJudge(t time.Duration) {
	n := m.rampSize()
	if has := len(m.ramp.results); t-m.ramp.began >= m.config.Recovery && has >= int(math.Ceil(float64(m.minCalls())/16)) {
		n = min(n, has) // the round has lasted long enough
	}
	best, worst := append([]modelResult{}, m.ramp.results...), append([]modelResult{}, m.ramp.results...)
	for len(best) < n {
		best = append(best, modelResult{outcome: breaker.Success})
		worst = append(worst, modelResult{outcome: breaker.Failure, slow: true})
	}
	if failed := m.rampFails(best, n); failed || !m.rampFails(worst, n) {
		m.rampNextRound(t, failed)
	}
}

func (m *modelBreaker) rampFails(rs []modelResult, n int) bool {
	c, limit := modelCount(rs, window.Counts{}), m.config.FailureRate
	if limit == breaker.Off {
		limit = 0.5
	}
	return modelReached(c.Failures, int64(n), limit) || modelReached(c.Slow, int64(n), m.config.SlowRate)
}

func (m *modelBreaker) rampNextRound(t time.Duration, failed bool) {
	r, recovery := &m.ramp, m.config.Recovery
	c := modelCount(r.results, window.Counts{})
	for _, x := range r.results {
		c.ConsecutiveFailures++
		if x.outcome == breaker.Success {
			c.ConsecutiveFailures = 0
		}
	}
	share, rare := r.share, !r.limited && t-r.began >= time.Second
	r.round, r.began, r.passed, r.results, r.limited = r.round+1, max(r.began, t), 0, nil, false
	switch {
	case failed:
		r.failed, r.share = max(r.failed, t), max(share/2, modelLeastShare)
		if share == modelLeastShare && t-r.good >= recovery {
			m.open(t, "calls", fmt.Sprintf("all rounds of calls failed for %v: %d of the last %d failed", recovery, c.Failures, c.Calls()), c)
		}
	case share == 1 && t-r.failed >= recovery:
		s := m.stay
		s.state, s.since, s.until = breaker.Closed, m.latest(t), modelNever
		m.enter(s, "calls", fmt.Sprintf("all calls pass and no round of them failed for %v", recovery), c)
	default:
		r.good, r.share = max(r.good, t), min(share*2, 1)
		if rare {
			r.share = 1
		}
	}
}
