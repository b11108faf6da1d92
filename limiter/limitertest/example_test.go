package limitertest_test

import (
	"testing"
	"time"

	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/limiter/limitertest"
)

// Run tests an implementation of limiter.TimedLimiter.
func Example() {
	_ = func(t *testing.T) {
		limitertest.Run(t, limitertest.Subject{
			New: func(time.Time) limiter.TimedLimiter {
				return limiter.NewSlidingLog(limiter.WindowConfig{Limit: 5, Window: 10 * time.Second})
			},
			Limit: 5,
			Most:  func(span time.Duration) int { return 5 * (1 + int(span/(10*time.Second))) },
		})
	}
	// Output:
}

// A test of a limiter with a minimal RetryAfter.
func ExampleSubject() {
	_ = func(t *testing.T) {
		limitertest.Run(t, limitertest.Subject{
			New: func(time.Time) limiter.TimedLimiter {
				return limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerSecond(1), Burst: 5})
			},
			Limit: 5,
			Most:  func(span time.Duration) int { return 5 + int(span/time.Second) },
			Exact: true,
		})
	}
	// Output:
}
