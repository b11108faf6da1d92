package window

import "math"

// Counts are the calls of a span of time. The zero value means no calls.
type Counts struct {
	// Successes is the number of successful calls.
	Successes int64 `json:"successes"`
	// Failures is the number of failed calls.
	Failures int64 `json:"failures"`
	// Slow is the number of calls, successful or failed, that took longer than the threshold.
	Slow int64 `json:"slow"`
	// SlowFailures is the number of slow calls that failed.
	SlowFailures int64 `json:"slow_failures"`
	// Ignored is the number of calls with the outcome Ignored. Calls does not include them.
	Ignored int64 `json:"ignored"`
	// Refused is the number of refused calls. Calls does not include them.
	Refused int64 `json:"refused"`
	// ConsecutiveFailures is the number of failures since the last success, however long ago they
	// were. It is 0 in a difference of two counts.
	ConsecutiveFailures int64 `json:"consecutive_failures"`
}

// Calls returns the number of successes and failures.
func (c Counts) Calls() int64 { return c.Successes + c.Failures }

// FailureRate returns the failed share of the calls, in 0..1, or 0 if there were no calls. Refused
// calls do not count, while alert.FailureRate counts them as failed.
func (c Counts) FailureRate() float64 { return ratio(c.Failures, c.Calls()) }

// SlowRate returns the slow share of the calls, in 0..1, or 0 if there were no calls.
func (c Counts) SlowRate() float64 { return ratio(c.Slow, c.Calls()) }

// Totals are the counts of a lifetime: all numbers except ConsecutiveFailures only grow. It is a
// type of its own so that the counts of a window cannot be used in its place.
type Totals Counts

// Calls returns the number of successes and failures.
func (t Totals) Calls() int64 { return Counts(t).Calls() }

// Minus returns what was counted between old and t, two readings of the same totals. If any number
// is lower than in old, the totals have started again from 0, and Minus returns all of t.
// Prometheus's increase does the same.
func (t Totals) Minus(old Totals) Counts {
	if t.restartedAfter(old) {
		return fromSums(Counts(t).sums())
	}
	return Counts(t).minus(Counts(old))
}

// restartedAfter reports whether any number is lower than in old.
func (t Totals) restartedAfter(old Totals) bool {
	before, now := Counts(old).sums(), Counts(t).sums()
	for i := range now {
		if now[i] < before[i] {
			return true
		}
	}
	return false
}

// sumCount is how many numbers of Counts can be added up: all but ConsecutiveFailures.
const sumCount = 6

func (c Counts) sums() [sumCount]int64 {
	return [sumCount]int64{c.Successes, c.Failures, c.Slow, c.SlowFailures, c.Ignored, c.Refused}
}

func fromSums(n [sumCount]int64) Counts {
	return Counts{Successes: n[0], Failures: n[1], Slow: n[2], SlowFailures: n[3], Ignored: n[4], Refused: n[5]}
}

func (c Counts) plus(d Counts) Counts {
	sums, more := c.sums(), d.sums()
	for i := range sums {
		sums[i] += more[i]
	}
	return fromSums(sums)
}

// minus wraps around, so it is correct for two readings of a sum that has wrapped around.
func (c Counts) minus(old Counts) Counts {
	sums, before := c.sums(), old.sums()
	for i := range sums {
		sums[i] -= before[i]
	}
	return fromSums(sums)
}

func (c Counts) times(share float64) Counts {
	sums := c.sums()
	for i := range sums {
		sums[i] = multiply(sums[i], share)
	}
	return fromSums(sums)
}

func ratio(part, whole int64) float64 {
	if whole <= 0 {
		return 0
	}
	return float64(part) / float64(whole)
}

// multiply returns n times a share in 0..1, rounded. A share of 1 is exact even if a float64 cannot
// hold n.
func multiply(n int64, share float64) int64 {
	if share >= 1 {
		return n
	}
	return int64(math.Round(float64(n) * share))
}
