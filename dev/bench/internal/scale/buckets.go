package scale

import (
	"time"

	"github.com/sony/gobreaker/v2"

	"github.com/weir-go/weir/dev/bench/internal/fit"
	"github.com/weir-go/weir/window"
)

// buckets varies the number of buckets of a window of ten seconds.
func (t timer) buckets() Experiment {
	return Experiment{
		File: "buckets", Title: "A window of 10 s in n buckets", X: "buckets", Y: "ns", Sizes: powersOfTen(10, 10_000),
		Lines: []Line{
			{Name: "Calls.Record", Says: fit.Constant, Cost: t.record},
			{Name: "Calls.Counts", Says: fit.Constant, Cost: t.counts},
			{Name: "Counter.Sum", Says: fit.Constant, Cost: t.sum},
			{Name: "gobreaker.Execute", Says: fit.Constant, Cost: t.gobreaker},
		},
		Why: "A window is a prefix sum. Recording is one add and reading is one subtraction, whatever the number of buckets. " +
			"With more buckets the window moves more often, every millisecond with 10,000. This is the rest of the slope.",
	}
}

func (t timer) record(buckets int) (float64, error) {
	c := window.NewCalls(window.CallsConfig{Buckets: buckets})
	return t.quickest(func(n int) int {
		for range n {
			c.Record(window.Success, 0)
		}
		return n
	})
}

func (t timer) counts(buckets int) (float64, error) {
	c := window.NewCalls(window.CallsConfig{Buckets: buckets})
	return t.quickest(func(n int) (right int) {
		for range n {
			if c.Counts().Failures == 0 {
				right++
			}
		}
		return right
	})
}

func (t timer) sum(buckets int) (float64, error) {
	c := window.NewCounter(window.Config{Buckets: buckets})
	return t.quickest(func(n int) (right int) {
		for range n {
			if c.Sum() == 0 {
				right++
			}
		}
		return right
	})
}

func (t timer) gobreaker(buckets int) (float64, error) {
	b := gobreaker.NewCircuitBreaker[int](gobreaker.Settings{Interval: 10 * time.Second, BucketPeriod: 10 * time.Second / time.Duration(buckets)})
	call := func() (int, error) { return 1, nil }
	return t.quickest(func(n int) (right int) {
		for range n {
			v, _ := b.Execute(call)
			right += v
		}
		return right
	})
}
