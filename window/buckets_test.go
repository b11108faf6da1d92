package window_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/window"
)

// bucketsAt returns the buckets at a number of seconds after t0, each with the second at which it
// begins.
func bucketsAt(c *window.Counter, second float64) (begins, sums []int64) {
	for begin, sum := range c.BucketsAt(t0.Add(time.Duration(second * float64(time.Second)))) {
		begins, sums = append(begins, int64(begin.Sub(t0)/time.Second)), append(sums, sum)
	}
	return begins, sums
}

func TestBucketsHoldWhatWasAddedInEach(t *testing.T) {
	c := window.NewCounterAt(window.Config{Span: 4 * time.Second, Buckets: 4}, t0)
	for s, n := range []int64{1, 2, 4, 8, 16, 32, 64} {
		c.AddAt(t0.Add(time.Duration(s)*time.Second), n)
	}
	for _, step := range []struct {
		at           float64
		begins, sums []int64
	}{
		{6.5, []int64{3, 4, 5, 6}, []int64{8, 16, 32, 64}},
		{8, []int64{5, 6, 7, 8}, []int64{32, 64, 0, 0}},
		{1000, []int64{997, 998, 999, 1000}, []int64{0, 0, 0, 0}},
		// an earlier time counts as in the newest bucket
		{2, []int64{3, 4, 5, 6}, []int64{8, 16, 32, 64}},
	} {
		begins, sums := bucketsAt(c, step.at)
		require.Equal(t, step.begins, begins, "at %v s", step.at)
		require.Equal(t, step.sums, sums, "at %v s", step.at)
	}
}

func TestBucketsThatHaveLeftTheWindowAreZero(t *testing.T) {
	c := window.NewCounterAt(window.Config{Span: 4 * time.Second, Buckets: 4}, t0)
	for s := range 4 {
		c.AddAt(t0.Add(time.Duration(s)*time.Second), 5)
	}
	var sums []int64
	for _, sum := range c.BucketsAt(t0.Add(3 * time.Second)) {
		sums = append(sums, sum)
		c.AddAt(t0.Add(time.Hour), 7)
	}
	require.Equal(t, []int64{5, 0, 0, 0}, sums)

	c = window.NewCounterAt(window.Config{Span: 4 * time.Second, Buckets: 4}, t0)
	for s := range 4 {
		c.AddAt(t0.Add(time.Duration(s)*time.Second), 5)
	}
	sums = nil
	for _, sum := range c.BucketsAt(t0.Add(3 * time.Second)) {
		sums = append(sums, sum)
		c.AddAt(t0.Add(5*time.Second), 7)
	}
	require.Equal(t, []int64{5, 0, 5, 5}, sums, "two of the four are still in the window")
}

func TestBucketsStopsWithTheLoop(t *testing.T) {
	c := window.NewCounterAt(window.Config{}, t0)
	for begin := range c.BucketsAt(t0) {
		require.Equal(t, t0.Add(-9*time.Second), begin)
		break
	}
}
