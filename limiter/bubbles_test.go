package limiter_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/limiter/guava"
)

// The limiters are created outside, like package variables, and used in two synctest bubbles.
func TestWaitInOneBubbleAfterAnother(t *testing.T) {
	c := limiter.TokenBucketConfig{Rate: limiter.PerSecond(1), Burst: 1}
	window := limiter.WindowConfig{Limit: 1, Window: sec}
	smooth, leaky := guava.NewSmoothBursty(guava.SmoothBurstyConfig{Rate: c.Rate, MaxBurst: sec}), limiter.NewLeakyBucket(limiter.LeakyBucketConfig{Rate: c.Rate, Capacity: 2})
	for name, w := range map[string]limiter.WaitLimiter{
		"bucket": limiter.NewTokenBucket(c), "log": limiter.NewSlidingLog(window), "fixed": limiter.NewFixedWindow(window),
		"joint": limiter.NewJoint("", limiter.NewJoint("", limiter.NewTokenBucket(c))), "key": limiter.NewGroup(limiter.GroupConfig[int]{Rate: c.Rate, Burst: 1}).Get(1),
		"named": limiter.NewJoint("x", limiter.NewTokenBucket(c)), "smooth": smooth, "leaky": leaky,
	} {
		for range 2 {
			synctest.Test(t, func(t *testing.T) {
				for range 3 {
					require.NoError(t, w.Wait(t.Context(), 1), name)
				}
			})
		}
	}
}

// A limiter that was used up outside of a bubble answers in it as a new one does.
func TestAnAnswerInABubbleIsThatOfANewLimiter(t *testing.T) {
	window := limiter.WindowConfig{Limit: 1, Window: time.Hour}
	for name, create := range map[string]func() limiter.TimedLimiter{
		"bucket": func() limiter.TimedLimiter {
			return limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.Per(1, time.Hour), Burst: 1})
		},
		"key": func() limiter.TimedLimiter {
			return limiter.NewGroup(limiter.GroupConfig[int]{Rate: limiter.Per(1, time.Hour), Burst: 1}).Get(1)
		},
		"leaky": func() limiter.TimedLimiter {
			return limiter.NewLeakyBucket(limiter.LeakyBucketConfig{Rate: limiter.Per(1, time.Hour), Capacity: 1})
		},
		"fixed":   func() limiter.TimedLimiter { return limiter.NewFixedWindow(window) },
		"sliding": func() limiter.TimedLimiter { return limiter.NewSlidingWindow(window) },
		"log":     func() limiter.TimedLimiter { return limiter.NewSlidingLog(window) },
	} {
		for _, at := range []bool{false, true} {
			l := create()
			require.True(t, l.Take(1).OK, name)
			require.False(t, l.Take(1).OK, name)
			synctest.Test(t, func(t *testing.T) {
				take := func(l limiter.TimedLimiter) limiter.Result {
					if at {
						return l.TakeAt(time.Now(), 1)
					}
					return l.Take(1)
				}
				want, got := take(create()), take(l)
				require.True(t, want.OK, name)
				got.ResetAfter = want.ResetAfter // that of a window depends on when it began
				require.Equal(t, want, got, name)
			})
		}
	}
}
