package window

import "math"

// Counts are the calls of some span of time, as plain numbers: raw figures are
// fields, what follows from them are methods. The zero value means no calls.
type Counts struct {
	Successes    int64 `json:"successes"`     // calls that the service answered as it should
	Failures     int64 `json:"failures"`      // calls that it failed
	Slow         int64 `json:"slow"`          // of successes and failures, those slower than the threshold
	SlowFailures int64 `json:"slow_failures"` // of the slow ones, those that failed
	Ignored      int64 `json:"ignored"`       // ended without a verdict; no part of Calls
	Refused      int64 `json:"refused"`       // never let through; no part of Calls

	// ConsecutiveFailures is the number of failures since the last success.
	// It does not decay with time. It is 0 in a difference of two counts.
	ConsecutiveFailures int64 `json:"consecutive_failures"`
}

// Calls returns the number of calls with a verdict: successes and failures.
func (c Counts) Calls() int64 { return c.Successes + c.Failures }

// FailureRate returns the share of calls that failed, in 0..1, and 0 where there were no calls.
// Refused calls are no part of it; alert.FailureRate differs, in that it counts them as failed.
func (c Counts) FailureRate() float64 { return share(c.Failures, c.Calls()) }

// SlowRate returns the share of calls that were slow, in 0..1, and 0 where there were no calls.
func (c Counts) SlowRate() float64 { return share(c.Slow, c.Calls()) }

// Totals are the counts of a whole lifetime: every figure but ConsecutiveFailures only grows. They
// are a type of their own, so that the counts of a window cannot be taken for them.
type Totals Counts

// Calls returns the number of calls with a verdict: successes and failures.
func (t Totals) Calls() int64 { return Counts(t).Calls() }

// Minus returns what was counted between old and t, two readings of one total. If any figure is
// lower than it was, the total began anew in between: Minus then returns all of t, as Prometheus'
// increase does.
func (t Totals) Minus(old Totals) Counts {
	if t.fell(old) {
		return countsOf(Counts(t).row())
	}
	return Counts(t).less(Counts(old))
}

// fell reports whether any figure that adds up is lower than it was.
func (t Totals) fell(old Totals) bool {
	before, now := Counts(old).row(), Counts(t).row()
	for i := range now {
		if now[i] < before[i] {
			return true
		}
	}
	return false
}

// less returns the difference of the figures that add up. It wraps around, so that it is right
// for two readings of a sum that has wrapped around.
func (c Counts) less(old Counts) Counts {
	before, now := old.row(), c.row()
	for i := range now {
		now[i] -= before[i]
	}
	return countsOf(now)
}

func share(part, whole int64) float64 {
	if whole <= 0 {
		return 0
	}
	return float64(part) / float64(whole)
}

// row lists the figures that add up.
func (c Counts) row() [viewCols]int64 {
	return [viewCols]int64{c.Successes, c.Failures, c.Slow, c.SlowFailures, c.Ignored, c.Refused}
}

// countsOf is the inverse of row.
func countsOf(row [viewCols]int64) Counts {
	return Counts{
		Successes: row[0], Failures: row[1], Slow: row[2], SlowFailures: row[3], Ignored: row[4], Refused: row[5],
	}
}

func (c Counts) plus(d Counts) Counts {
	sum, more := c.row(), d.row()
	for i := range sum {
		sum[i] += more[i]
	}
	return countsOf(sum)
}

func (c Counts) times(share float64) Counts {
	row := c.row()
	for i := range row {
		row[i] = partOf(row[i], share)
	}
	return countsOf(row)
}

// partOf returns the share of n, in 0..1, rounded. It is exact for a share of 1, also where a
// float64 cannot hold n.
func partOf(n int64, share float64) int64 {
	if share >= 1 {
		return n
	}
	return int64(math.Round(float64(n) * share))
}
