package fleet

import (
	"time"

	"github.com/weir-go/weir/window"
)

// row is a window.Counts without the streak: what can be added up.
type callCounts [6]int64

func callCountsOf(c window.Counts) callCounts {
	return callCounts{c.Successes, c.Failures, c.Slow, c.SlowFailures, c.Ignored, c.Refused}
}

func (r callCounts) windowCounts() window.Counts {
	return window.Counts{Successes: r[0], Failures: r[1], Slow: r[2], SlowFailures: r[3], Ignored: r[4], Refused: r[5]}
}

func (r callCounts) plus(s callCounts) callCounts {
	for i, n := range s {
		r[i] += n
	}
	return r
}

// less is r − s, and 0 where s is more.
func (r callCounts) minus(s callCounts) callCounts {
	for i, n := range s {
		r[i] = max(r[i]-n, 0)
	}
	return r
}

// holds reports whether no figure of r is less than that of s.
func (r callCounts) atLeast(s callCounts) bool { return s.minus(r) == callCounts{} }

// delta is what one node counted in a stretch of time.
type delta struct {
	from time.Duration // when the first part of it was taken up
	at   time.Duration // when the last was
	callCounts
}

// bucket is a part of the fleet's window. Its number is that of its width since 1970.
type bucket struct {
	number int64
	callCounts
}
