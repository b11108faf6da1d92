package limiter_test

import (
	"context"
	"math"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/limiter"
)

// The waiters want more tokens in total than an int64 can count. Some leave, and the others are
// served when the hold ends.
func TestRequestsForVeryManyTokensWait(t *testing.T) {
	type held interface {
		limiter.TimedLimiter
		limiter.WaitLimiter
		holdableLimiter
	}
	bucket := func() held { return limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.Unlimited()}) }
	for name, make := range map[string]func() held{
		"bucket": bucket,
		"joint":  func() held { return limiter.NewJoint("", bucket()) },
		"nested": func() held {
			return limiter.NewJoint("", limiter.NewJoint("", bucket()))
		},
		"key": func() held {
			return limiter.NewGroup(limiter.GroupConfig[int]{Rate: limiter.Unlimited()}).Get(1)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := make()
				l.Hold(hour)
				all := newCallers(t, l)
				ctx, leave := context.WithCancel(t.Context())
				all.start(t.Context(), "first", math.MaxInt)
				all.start(ctx, "gone", math.MaxInt)
				all.start(ctx, "gone too", math.MaxInt)
				all.start(t.Context(), "last", 10)
				leave()
				synctest.Wait()
				all.mu.Lock()
				require.Len(t, all.log, 2)
				all.log = nil
				all.mu.Unlock()
				require.False(t, l.Take(1).OK)
				all.all.Wait()
				require.Len(t, all.log, 2)
				// both are let go at one moment, so either may write first
				require.ElementsMatch(t, []string{"first", "last"}, []string{all.log[0].who, all.log[1].who})
				for _, c := range all.log {
					require.Equal(t, hour, c.at)
					require.NoError(t, c.err)
				}
			})
		})
	}
}
