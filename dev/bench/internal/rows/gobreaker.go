package rows

import (
	"time"

	"github.com/sony/gobreaker/v2"

	"github.com/weir-go/weir/dev/bench/internal/measure"
)

// rollingGobreaker returns a gobreaker with the default window and rule of weir. It opens at the
// given share of failures.
func rollingGobreaker(share float64) *gobreaker.CircuitBreaker[int] {
	return gobreaker.NewCircuitBreaker[int](gobreaker.Settings{
		Interval: 10 * time.Second, BucketPeriod: time.Second, Timeout: time.Hour,
		ReadyToTrip: func(c gobreaker.Counts) bool {
			return c.Requests >= 20 && float64(c.TotalFailures) >= share*float64(c.Requests)
		},
	})
}

func gobreakerExecute() Side {
	return Side{"gobreaker Execute", "rolling window of 10 × 1 s, opens at 50 % of at least 20 calls; two locks, two time.Now; panic-safe", func() measure.Loop {
		b := rollingGobreaker(0.5)
		return func(n int) (right int) {
			for range n {
				if v, err := b.Execute(succeedBare); err == nil {
					right += v
				}
			}
			return right
		}
	}}
}

func gobreakerFails() Side {
	return Side{"gobreaker Execute", "rolling window of 10 × 1 s; calls ReadyToTrip at each failure, which returns false", func() measure.Loop {
		b := rollingGobreaker(1)
		return func(n int) (right int) {
			right, _ = b.Execute(succeedBare)
			for range n - 1 {
				if v, err := b.Execute(failBare); err != nil {
					right -= v
				}
			}
			return right
		}
	}}
}

func gobreakerRefuses() Side {
	return Side{"gobreaker Execute", "open for an hour; returns a fixed error", func() measure.Loop {
		b := rollingGobreaker(0.5)
		for b.State() == gobreaker.StateClosed {
			_, _ = b.Execute(failBare)
		}
		return func(n int) (right int) {
			for range n {
				if v, err := b.Execute(succeedBare); err != nil && v == 0 {
					right++
				}
			}
			return right
		}
	}}
}
