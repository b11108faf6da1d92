package breaker

import (
	"fmt"
	"math"
	"time"

	"github.com/weir-go/weir/internal/cusum"
)

const (
	// A run must be longer by one failure for every busyShare calls in the window. So failures that
	// come all together do not open a breaker if they are a smaller share of the calls in the
	// window.
	busyShare = 6
	// chanceShare is the share of FailureRate up to which failures count as chance.
	chanceShare = 0.4
	// minCallsBetweenRuns is a lower bound of the mean number of calls between two runs of the
	// default length that happen by chance.
	minCallsBetweenRuns = 1_000_000
	// sparedCalls is the number of calls that are refused before each probe while the service is
	// very likely still down. If it takes longer than longestSpare, the probe is made earlier.
	sparedCalls  = 7
	longestSpare = 10 * time.Minute
)

// defaultRun returns the default of FailureRun for a Config whose other fields have their defaults.
func (c *Config) defaultRun() int {
	if c.LastCalls > 0 || c.FailureRate < 0 {
		return math.MaxInt
	}
	byChance := cusum.Least(minCallsBetweenRuns, chanceShare*c.FailureRate, c.FailureRate)
	byRate := math.Ceil(c.FailureRate*float64(c.MinCalls) - 1e-6)
	return max(int(byChance), int(byRate))
}

// countFailure adds a failure to the run. It must be called before the tally counts the call: see
// RatesAndMarkClean.
func (p *phase) countFailure(at time.Duration) (run cusum.Run) {
	if run = p.addToRun(true); run.Calls() == 1 {
		p.live.runBegan.Store(int64(at))
	}
	return run
}

// addToRun counts a call for the run. It writes nothing for a success while the run is empty.
func (p *phase) addToRun(failed bool) (run cusum.Run) {
	if p.runs {
		run = p.live.run.Add(p.rules.run, failed)
	}
	return run
}

// runReason says how unlikely a run is by chance, as a power of ten: see package cusum.
func (r *rules) runReason(run cusum.Run) string {
	rate := r.config.FailureRate
	odds := cusum.Score(run, rate) * cusum.Exponent(chanceShare*rate, rate) / math.Ln10
	return fmt.Sprintf("%d of the last %d calls failed, by chance less than once in 10^%.0f calls if %.3g%% fail",
		run.Failures(), run.Calls(), math.Floor(odds), 100*chanceShare*rate)
}

// spareAfter returns for how long calls may be refused after a failed probe: the time in which
// sparedCalls calls and the probe came during the run.
func (p *phase) spareAfter(run cusum.Run, at time.Duration) time.Duration {
	calls := run.Calls() - 1
	if calls < 1 {
		return 0
	}
	gap := max(at-time.Duration(p.live.runBegan.Load()), 0) / time.Duration(calls)
	return min(gap, longestSpare/(sparedCalls+1)) * (sparedCalls + 1)
}

// spares reports whether calls may be refused until spareUntil.
func (p *phase) spares() bool { return p.byRun && p.rounds > 0 }

// tooEarlyToProbe reports whether more calls must be refused before the first probe, because the
// service is very likely still down.
func (b *Breaker) tooEarlyToProbe(p *phase, at time.Duration) bool {
	return p.spares() && at < p.spareUntil && int64(b.refused.Load())-p.recovery.refused < sparedCalls
}
