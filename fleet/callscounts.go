package fleet

import (
	"time"

	"github.com/weir-go/weir/window"
)

// callCounts is the additive part of a window.Counts, in the order of the script.
type callCounts [6]int64

func callCountsOf(c window.Counts) callCounts {
	return callCounts{c.Successes, c.Failures, c.Slow, c.SlowFailures, c.Ignored, c.Refused}
}

func (c callCounts) windowCounts() window.Counts {
	return window.Counts{Successes: c[0], Failures: c[1], Slow: c[2], SlowFailures: c[3], Ignored: c[4], Refused: c[5]}
}

// maxCount bounds sums, because a server can report any numbers again and again. Two such sums can
// be added.
const maxCount = 1 << 61

func (c callCounts) plus(d callCounts) callCounts {
	for i, n := range d {
		c[i] = min(c[i]+n, maxCount)
	}
	return c
}

// minus returns c − d, with 0 in place of negative values.
func (c callCounts) minus(d callCounts) callCounts {
	for i, n := range d {
		c[i] = max(c[i]-n, 0)
	}
	return c
}

// isAtLeast reports whether no value of c is less than that of d.
func (c callCounts) isAtLeast(d callCounts) bool { return d.minus(c) == callCounts{} }

// delta holds the calls that one node counted between two times.
type delta struct {
	from, at time.Duration
	callCounts
}

// bucket is a bucket of the window that all nodes share. Buckets are numbered from 1970 on.
type bucket struct {
	number int64
	callCounts
}
