package breaker_test

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/internal/cusum"
	"github.com/weir-go/weir/window"
)

// modelDefaults replaces zero and Off in the fields by the values that the comments of the fields
// name. In rates it keeps Off.
func modelDefaults(c breaker.Config) breaker.Config {
	def := func(d *time.Duration, zero, off time.Duration) {
		switch *d {
		case 0:
			*d = zero
		case breaker.Off:
			*d = off
		}
	}
	if c.FailureRate == 0 {
		c.FailureRate = 0.5
	}
	if c.SlowRate == 0 {
		c.SlowRate = 0.5
	}
	if c.SlowCall == 0 {
		c.SlowRate = breaker.Off
	}
	if c.MinCalls == 0 {
		c.MinCalls = 20
	}
	switch {
	case c.FailureRun != 0:
	case c.LastCalls > 0 || c.FailureRate == breaker.Off:
		c.FailureRun = breaker.Off
	default:
		chance := int(cusum.Least(1e6, 0.4*c.FailureRate, c.FailureRate))
		c.FailureRun = max(chance, int(math.Ceil(c.FailureRate*float64(c.MinCalls)-1e-6)))
	}
	if c.LastCalls == 0 {
		def(&c.Window, 10*time.Second, 0)
		if c.Buckets == 0 {
			c.Buckets = 10
		}
	}
	def(&c.Cooldown, time.Second, 0)
	if c.CooldownFactor == 0 {
		c.CooldownFactor = 1
	}
	def(&c.MaxCooldown, max(5*time.Minute, c.Cooldown), 0)
	def(&c.MaxRetryAfter, time.Minute, 0)
	if c.Probes == 0 {
		c.Probes = 3
	}
	def(&c.ProbeTimeout, 10*time.Second, 0)
	def(&c.Recovery, 20*time.Second, 0)
	return c
}

// modelResult is a call that has ended.
type modelResult struct {
	call    *modelCall
	bucket  int64
	outcome breaker.Outcome
	slow    bool
}

func (m *modelBreaker) addResult(t time.Duration, r modelResult) {
	m.roll(t, r.outcome == breaker.Failure || r.slow && r.isJudged())
	m.newest = max(m.newest, m.bucket(t))
	r.bucket = m.newest
	m.results = append(m.results, r)
	m.totals = window.Totals(modelCount([]modelResult{r}, window.Counts(m.totals)))
	switch r.outcome {
	case breaker.Failure:
		m.streak++
		m.totals.ConsecutiveFailures++
	case breaker.Success:
		m.streak = 0
		m.totals.ConsecutiveFailures = 0
	default: // an ignored call does not change the streak
	}
}

// window returns what is judged: the results since the stay began that are among
// the last calls, or in the last buckets as seen from t.
func (m *modelBreaker) window(t time.Duration) (in []modelResult) {
	in = m.results[m.from:]
	if n := m.config.LastCalls; n > 0 {
		calls := 0
		for i, r := range slices.Backward(in) {
			if r.isJudged() {
				calls++
			}
			if calls > n {
				return in[i+1:]
			}
		}
		return in
	}
	oldest := max(m.newest, m.bucket(t)) - int64(m.config.Buckets) + 1
	for i := range in {
		if in[i].bucket >= oldest {
			return in[i:]
		}
	}
	return nil
}

func (r modelResult) isJudged() bool { return r.outcome <= breaker.Failure }

// modelCount adds up results. Streaks are counted elsewhere.
func modelCount(rs []modelResult, c window.Counts) window.Counts {
	for _, r := range rs {
		switch r.outcome {
		case breaker.Success:
			c.Successes++
		case breaker.Failure:
			c.Failures++
		default:
			c.Ignored++
			continue
		}
		if r.slow {
			c.Slow++
			if r.outcome == breaker.Failure {
				c.SlowFailures++
			}
		}
	}
	return c
}

// countsAt returns the counts of the window.
func (m *modelBreaker) countsAt(t time.Duration) window.Counts {
	c := modelCount(m.window(t), window.Counts{})
	c.ConsecutiveFailures = m.streak
	return c
}

// judge opens a closed breaker if its results reach a limit.
func (m *modelBreaker) judge(call *modelCall, t time.Duration, o breaker.Outcome) {
	m.markClean(t)
	if m.judgeLimits(call, t); m.stay.state == breaker.Closed {
		m.sampleAgain(t, o)
	}
}

func (m *modelBreaker) judgeLimits(call *modelCall, t time.Duration) {
	c, k := m.countsAt(t), &m.config
	pending, known := m.pending(call)
	if reason := m.rateReached(c, pending); reason != "" && known {
		m.open(t, "calls", reason, c)
		return
	}
	if run, reason := m.run.trippedBy(k, c, pending); reason != "" && known {
		m.stay.byRun, m.stay.spare = true, 0
		if n := time.Duration(run.Calls()) - 1; n > 0 {
			m.stay.spare = 8 * min((t-m.runBegan)/n, 10*time.Minute/8)
		}
		m.open(t, "calls", reason, run)
		return
	}
	if n := int64(k.ConsecutiveFailures); n > 0 && m.streak >= n {
		m.open(t, "calls", fmt.Sprintf("%d failures in a row, limit %d", m.streak, n), c)
		return
	}
	if k.Trip != nil {
		if reason, trip := k.Trip(c); trip {
			m.open(t, "calls", reason, c)
			return
		}
	}
	if k.SharedCounts != nil {
		if reason := m.rateReached(*m.evidence, 0); reason != "" {
			m.open(t, "shared_counts", reason+", by shared counts", c)
		}
	}
}

// minCalls is the lowest number of calls that can open the breaker. If the window holds fewer
// calls, a full window is enough.
func (m *modelBreaker) minCalls() int64 {
	if n := m.config.LastCalls; n > 0 {
		return int64(min(m.config.MinCalls, n))
	}
	return int64(m.config.MinCalls)
}

// rateReached returns which rate is reached, or "" if none is. The failure rate is that which is
// left if all pending calls succeed.
func (m *modelBreaker) rateReached(c window.Counts, pending int64) string {
	if c.Calls() < m.minCalls() {
		return ""
	}
	return m.ratesOf(c, pending)
}

func (m *modelBreaker) ratesOf(c window.Counts, pending int64) string {
	if limit := m.config.FailureRate; modelReached(c.Failures, c.Calls()+pending, limit) {
		return modelReason("failure", c.Failures, c.Calls(), limit)
	}
	if limit := m.config.SlowRate; modelReached(c.Slow, c.Calls(), limit) {
		return modelReason("slow", c.Slow, c.Calls(), limit)
	}
	return ""
}

func modelReached(part, all int64, limit float64) bool {
	return limit != breaker.Off && all > 0 && float64(part)/float64(all) >= limit-1e-7
}

func modelReason(which string, part, all int64, limit float64) string {
	return fmt.Sprintf("%s rate %.3g%% of %d calls, limit %.3g%%", which, 100*float64(part)/float64(all), all, 100*limit)
}

// probe records the result of a probe. The slot of a success or a failure stays used.
func (m *modelBreaker) probe(c *modelCall, t time.Duration, r modelResult) {
	if !r.isJudged() {
		if m.places[c.place] == c {
			m.places[c.place] = nil
		}
		return
	}
	c.verdict = true
	streak := m.probed.ConsecutiveFailures + 1
	if r.outcome == breaker.Success {
		streak = 0
	}
	m.probed = modelCount([]modelResult{r}, m.probed)
	m.probed.ConsecutiveFailures = streak
	m.concludeProbes(t)
}

// concludeProbes ends a half-open stay if there are enough results.
func (m *modelBreaker) concludeProbes(t time.Duration) {
	c := m.probed
	if m.config.FailureRate == breaker.Off && c.Failures > 0 {
		m.open(t, "calls", "a probe failed", c)
		return
	}
	need := int64(max(min(m.config.MinCalls, m.config.Probes), 1))
	if m.stay.byRun && c.Successes == 0 {
		need = 1
	}
	inFlight, _ := m.slotsInUse(t)
	if m.config.FailureRun == breaker.Off {
		inFlight = nil
	}
	if _, decided := m.verdict(c, int64(len(inFlight))); !decided || c.Calls() < need {
		return
	}
	if reason := m.ratesOf(c, 0); reason != "" {
		m.open(t, "calls", reason+", of probes", c)
		return
	}
	reason := fmt.Sprintf("%d of %d probes succeeded", c.Successes, c.Calls())
	s := m.stay
	s.state, s.since, s.until = m.afterProbes(), m.latest(t), modelNever
	m.enter(s, "calls", reason, c)
}
