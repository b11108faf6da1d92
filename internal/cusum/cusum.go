// Package cusum finds runs of calls of which too many failed, however long they are and however far
// apart the calls are. It is Page's cumulative sum (Biometrika 41, 1954) for two outcomes.
//
// A failure adds 1 to a score. A success takes away rate / (1 − rate), 1 at a rate of 50 %, and the
// score is never negative. So the score rises if more than the rate of the calls fail, and falls if
// fewer do. The run is the calls since the score was last 0.
//
// The score is also a sum of log-likelihood ratios, divided by a constant. For each failure rate p
// below the rate there is one rate q above it such that log(q/p) for a failure and log((1−q)/(1−p))
// for a success are in the same proportion as in the score. Exponent returns log(q/p). For 20 % at
// a rate of 50 %, q is 80 % and a failure is worth log 4. By Lorden (Annals of Mathematical
// Statistics 42, 1971), a score of h is reached on average once in exp(h × Exponent) calls or less
// often, if a share p of the calls fails independently.
package cusum

import "sync/atomic"

// Run is the calls since the score was last 0: all calls in its low half, and the failures in its
// high half. The zero Run is a score of 0.
type Run uint64

const (
	success Run = 1
	failure Run = 1<<32 | 1

	// longestRun is the number of calls after which a run starts again, so that no half overflows.
	// If failures last that long without reaching Least, only the failure rate of the window can
	// detect them.
	longestRun = 1 << 31

	fixedPointOne = 1_000_000_000
)

// Calls returns the number of calls.
func (n Run) Calls() int64 { return int64(uint32(n)) }

// Failures returns the number of failed calls.
func (n Run) Failures() int64 { return int64(n >> 32) }

// FewerFailures returns the run in which up to k of the failures are successes.
func (n Run) FewerFailures(k int64) Run { return n - Run(min(k, n.Failures()))<<32 }

// MoreSuccesses returns the run with k more successes.
func (n Run) MoreSuccesses(k int64) Run { return n + Run(k)*success }

func (n Run) successes() int64 { return n.Calls() - n.Failures() }

// Rule holds the thresholds of a run.
type Rule struct {
	rate  int64 // in parts of a billion
	least int64
}

// NewRule returns a rule for a rate in parts of a billion, above 0 and at most 1, and the score
// that a run must reach, at least 1.
func NewRule(rate, least int64) Rule { return Rule{rate, least} }

// Least returns the score that a run must reach.
func (r Rule) Least() int64 { return r.least }

// Next returns the run after one more call.
func (r Rule) Next(n Run, failed bool) Run {
	switch {
	case n.Calls() >= longestRun:
		return 0
	case failed:
		return n + failure
	case n.Failures()*(fixedPointOne-r.rate) <= (n.successes()+1)*r.rate+n.Calls():
		// the rate was rounded down
		return 0
	}
	return n + success
}

// Reached reports whether the score of a run is at least Least + busy.
func (r Rule) Reached(n Run, busy int64) bool {
	ahead := n.Failures() - r.least - busy
	return n != 0 && ahead >= 0 && ahead*(fixedPointOne-r.rate) >= n.successes()*r.rate
}

// Counter is a run that any number of goroutines add to. The zero Counter is ready to use.
type Counter struct{ run atomic.Uint64 }

// Add counts a call and returns the run with it. A success in an empty run writes nothing.
func (c *Counter) Add(r Rule, failed bool) Run {
	for {
		old := c.run.Load()
		next := r.Next(Run(old), failed)
		if uint64(next) == old || c.run.CompareAndSwap(old, uint64(next)) {
			return next
		}
	}
}

// Load returns the run.
func (c *Counter) Load() Run { return Run(c.run.Load()) }

// Clear begins a new run.
func (c *Counter) Clear() { c.run.Store(0) }
