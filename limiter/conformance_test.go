package limiter_test

import (
	"math"
	"math/big"
	"testing"
	"time"

	"github.com/weir-go/weir/internal/testenv"
	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/limiter/limitertest"
)

// Every limiter passes limitertest, which includes scenario 8 (RetryAfter is enough and minimal) and
// scenario 47 (no window holds more than its limit).
func TestConformance(t *testing.T) {
	for name, s := range map[string]limitertest.Subject{
		"TokenBucket":           tokenBucket(limiter.PerSecond(1), 5, 1, sec),
		"TokenBucket/third":     tokenBucket(limiter.PerSecond(3), 4, 3, sec),
		"TokenBucket/fast":      tokenBucket(limiter.PerSecond(1000003), 7, 1000003, sec),
		"TokenBucket/very fast": tokenBucket(limiter.Per(3, 2), 6, 3, 2),
		"TokenBucket/slow":      tokenBucket(limiter.Per(7, 24*hour), 3, 7, 24*hour),
		"TokenBucket/one":       tokenBucket(limiter.Per(1, 13*ms), 1, 1, 13*ms),
		"FixedWindow": windows(5, 10*sec, 2, func(c limiter.WindowConfig, t0 time.Time) limiter.TimedLimiter {
			return limiter.NewFixedWindowAt(c, t0)
		}),
		"SlidingLog": windows(5, 10*sec, 1, func(c limiter.WindowConfig, t0 time.Time) limiter.TimedLimiter {
			return limiter.NewSlidingLogAt(c, t0)
		}),
		"SlidingWindow":          windows(5, 10*sec, 1, sliding(10)),
		"SlidingWindow/one part": windows(3, 10*sec, 1, sliding(1)),
		"SlidingWindow/odd":      windows(8, 10*sec, 1, sliding(7)),
		"Joint":                  jointLimits(),
		"Named":                  namedBucket(),
	} {
		s.Seeds = testenv.Repeat(12, 4)
		t.Run(name, func(t *testing.T) { limitertest.Run(t, s) })
	}
}

func tokenBucket(r limiter.Rate, burst int, events int64, in time.Duration) limitertest.Subject {
	return limitertest.Subject{
		New: func(t0 time.Time) limiter.TimedLimiter {
			return limiter.NewTokenBucketAt(limiter.TokenBucketConfig{Rate: r, Burst: burst}, t0)
		},
		Limit: burst,
		Most: func(d time.Duration) int { // exact to two nanoseconds
			come := new(big.Int).Mul(big.NewInt(int64(d)+2), big.NewInt(events))
			return burst + int(min(come.Div(come, big.NewInt(int64(in))).Int64(), math.MaxInt32))
		},
		Exact: true,
		Step:  max(in/time.Duration(events), 2),
	}
}

// jointLimits is a Joint of a token bucket and a log, with the tighter bound of the two.
func jointLimits() limitertest.Subject {
	bucket, log := tokenBucket(limiter.PerSecond(1), 5, 1, sec), windows(8, 10*sec, 1, func(c limiter.WindowConfig, t0 time.Time) limiter.TimedLimiter {
		return limiter.NewSlidingLogAt(c, t0)
	})
	return limitertest.Subject{
		New: func(t0 time.Time) limiter.TimedLimiter {
			return limiter.NewJoint(limiter.JointConfig{}, bucket.New(t0), log.New(t0))
		},
		Limit: 5,
		Most:  func(d time.Duration) int { return min(bucket.Most(d), log.Most(d)) },
		Exact: true,
		Step:  sec,
	}
}

func namedBucket() limitertest.Subject {
	s := tokenBucket(limiter.PerSecond(3), 4, 3, sec)
	bare := s.New
	s.New = func(t0 time.Time) limiter.TimedLimiter {
		return limiter.NewJoint(limiter.JointConfig{Name: "n"}, bare(t0))
	}
	return s
}

// windows describes a window limiter. At any moment, up to edge of its windows may end and begin.
func windows(limit int, span time.Duration, edge int, build func(limiter.WindowConfig, time.Time) limiter.TimedLimiter) limitertest.Subject {
	return limitertest.Subject{
		New: func(t0 time.Time) limiter.TimedLimiter {
			return build(limiter.WindowConfig{Limit: limit, Window: span}, t0)
		},
		Limit: limit,
		Most:  func(d time.Duration) int { return limit * (int(d/span) + edge) },
		Exact: true,
		Step:  span / time.Duration(limit),
	}
}

func sliding(buckets int) func(limiter.WindowConfig, time.Time) limiter.TimedLimiter {
	return func(c limiter.WindowConfig, t0 time.Time) limiter.TimedLimiter {
		return limiter.NewSlidingWindowAt(limiter.WindowConfig{Limit: c.Limit, Window: c.Window, Buckets: buckets}, t0)
	}
}
