package breaker_test

import (
	"fmt"
	"math"
	"time"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/internal/cusum"
	"github.com/weir-go/weir/window"
)

type modelResults []modelResult

// trippedBy returns the run of failures that ends with the last result, and the reason if it is
// long enough to open the breaker. Of all numbers of last calls it is the one with the highest
// score. If several have that score, it is the smallest of them.
func (rs modelResults) trippedBy(c *breaker.Config, in window.Counts, pending int64) (best window.Counts, reason string) {
	if len(rs) == 0 || rs[len(rs)-1].outcome != breaker.Failure {
		return best, ""
	}
	undone := c.FailureRate / (1 - c.FailureRate)
	highest := 0.0
	for n := 1; n <= len(rs); n++ {
		counts := modelCount(rs[len(rs)-n:], window.Counts{})
		score := float64(counts.Failures)
		if counts.Successes > 0 {
			score -= float64(counts.Successes) * undone
		}
		if score > highest+1e-6 {
			best, highest = counts, score
		}
	}
	left := highest // if all pending calls succeed
	if pending > 0 {
		left -= float64(pending) * undone
	}
	if left < float64(c.FailureRun)+math.Floor(float64(in.Calls()+pending)/6)-1e-6 {
		return best, ""
	}
	x := cusum.Exponent(0.4*c.FailureRate, c.FailureRate)
	best.Slow = min(in.Slow, best.Calls()) // those in the window
	best.SlowFailures = min(in.SlowFailures, best.Slow, best.Failures)
	best.ConsecutiveFailures, best.Ignored = in.ConsecutiveFailures, in.Ignored
	return best, fmt.Sprintf("%d of the last %d calls failed, by chance less than once in 10^%v calls if %.3g%% fail",
		best.Failures, best.Calls(), math.Floor(highest*x/math.Ln10), 40*c.FailureRate)
}

// runLength returns the number of calls of the run that ends with the last result.
func (m *modelBreaker) runLength(rs modelResults) int {
	undone := m.config.FailureRate / (1 - m.config.FailureRate)
	length, score := 0, 0.0
	for _, r := range rs {
		if r.outcome == breaker.Failure {
			score, length = score+1, length+1
		} else if score, length = score-undone, length+1; score < 1e-6 {
			score, length = 0, 0
		}
	}
	return length
}

// tooEarlyToProbe reports whether calls are refused before the first probe of a stay.
func (m *modelBreaker) tooEarlyToProbe(s *modelStay, t time.Duration) bool {
	return s.byRun && s.rounds > 0 && t < s.spareTo && m.totals.Refused-s.refused < 7
}
