package limiter_test

import (
	"testing"
	"testing/synctest"

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
