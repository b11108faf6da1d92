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

// Every limiter passes limitertest, which includes scenario 8 (RetryAfter is enough and minimal)
// and scenario 47 (no window holds more than its limit).
func TestConformance(t *testing.T) {
	for name, s := range map[string]limitertest.Subject{
		"TokenBucket":           bucketSubject(limiter.PerSecond(1), 5, 1, sec),
		"TokenBucket/third":     bucketSubject(limiter.PerSecond(3), 4, 3, sec),
		"TokenBucket/fast":      bucketSubject(limiter.PerSecond(1000003), 7, 1000003, sec),
		"TokenBucket/very fast": bucketSubject(limiter.Per(3, 2), 6, 3, 2),
		"TokenBucket/slow":      bucketSubject(limiter.Per(7, 24*hour), 3, 7, 24*hour),
		"TokenBucket/one":       bucketSubject(limiter.Per(1, 13*ms), 1, 1, 13*ms),
		"FixedWindow": windowSubject(5, 10*sec, 2, func(c limiter.WindowConfig, t0 time.Time) limiter.TimedLimiter {
			return limiter.NewFixedWindowAt(c, t0)
		}),
		"SlidingLog": windowSubject(5, 10*sec, 1, func(c limiter.WindowConfig, t0 time.Time) limiter.TimedLimiter {
			return limiter.NewSlidingLogAt(c, t0)
		}),
		"SlidingWindow":          windowSubject(5, 10*sec, 1, newSlidingWindowWith(10)),
		"SlidingWindow/one part": windowSubject(3, 10*sec, 1, newSlidingWindowWith(1)),
		"SlidingWindow/odd":      windowSubject(8, 10*sec, 1, newSlidingWindowWith(7)),
		"Joint":                  jointSubject(),
		"Named":                  namedBucketSubject(),
	} {
		s.Seeds = testenv.Repeat(12, 4)
		t.Run(name, func(t *testing.T) { limitertest.Run(t, s) })
	}
}

func bucketSubject(r limiter.Rate, burst int, events int64, in time.Duration) limitertest.Subject {
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

// jointSubject is a Joint of a token bucket and a log, with the tighter bound of the two.
func jointSubject() limitertest.Subject {
	bucket, log := bucketSubject(limiter.PerSecond(1), 5, 1, sec), windowSubject(8, 10*sec, 1, func(c limiter.WindowConfig, t0 time.Time) limiter.TimedLimiter {
		return limiter.NewSlidingLogAt(c, t0)
	})
	return limitertest.Subject{
		New: func(t0 time.Time) limiter.TimedLimiter {
			return limiter.NewJoint("", bucket.New(t0), log.New(t0))
		},
		Limit: 5,
		Most:  func(d time.Duration) int { return min(bucket.Most(d), log.Most(d)) },
		Exact: true,
		Step:  sec,
	}
}

func namedBucketSubject() limitertest.Subject {
	s := bucketSubject(limiter.PerSecond(3), 4, 3, sec)
	bare := s.New
	s.New = func(t0 time.Time) limiter.TimedLimiter {
		return limiter.NewJoint("n", bare(t0))
	}
	return s
}

// windowSubject describes a window limiter. At any moment, up to edge of its windows may end and
// begin.
func windowSubject(limit int, span time.Duration, edge int, build func(limiter.WindowConfig, time.Time) limiter.TimedLimiter) limitertest.Subject {
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

func newSlidingWindowWith(buckets int) func(limiter.WindowConfig, time.Time) limiter.TimedLimiter {
	return func(c limiter.WindowConfig, t0 time.Time) limiter.TimedLimiter {
		return limiter.NewSlidingWindowAt(limiter.WindowConfig{Limit: c.Limit, Window: c.Window, Buckets: buckets}, t0)
	}
}
