package limiter_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/limiter/guava"
)

// limitersOfAllKinds returns limiters that allow five requests at once and one more per minute,
// except the paced ones, which allow one.
func limitersOfAllKinds() map[string]limiter.TimedLimiter {
	bucket := limiter.TokenBucketConfig{Rate: limiter.PerMinute(1), Burst: 5}
	odd := limiter.TokenBucketConfig{Rate: limiter.PerMinute(1.7), Burst: 5}
	named := bucket
	named.Name = "named"
	window := limiter.WindowConfig{Limit: 5, Window: 5 * time.Minute}
	key := limiter.NewGroup(limiter.GroupConfig[string]{Rate: bucket.Rate, Burst: 5, MaxKeys: 1}).Get("k")
	return map[string]limiter.TimedLimiter{
		"bucket": limiter.NewTokenBucket(bucket), "named": limiter.NewTokenBucket(named), "odd": limiter.NewTokenBucket(odd),
		"fixed": limiter.NewFixedWindow(window), "sliding": limiter.NewSlidingWindow(window), "log": limiter.NewSlidingLog(window),
		"key":        key,
		"joint":      limiter.NewJoint("", limiter.NewTokenBucket(bucket), limiter.NewSlidingLog(window)),
		"leaky":      limiter.NewLeakyBucket(limiter.LeakyBucketConfig{Rate: bucket.Rate, Capacity: 5}),
		"guava":      guava.NewSmoothBursty(guava.SmoothBurstyConfig{Rate: bucket.Rate}),
		"warming up": guava.NewSmoothWarmingUp(guava.SmoothWarmingUpConfig{Rate: bucket.Rate, WarmUp: time.Minute}),
	}
}

// spend takes tokens until the limiter refuses, and returns how many.
func spend(take func(n int) limiter.Result) (n int) {
	for ; take(1).OK; n++ {
	}
	return n
}

// A package variable is used with the real clock, then in a bubble, in which the clock is 26 years
// earlier, then in another bubble, whose clock begins anew, and then with the real clock.
func TestALimiterStartsAgainWithEachClock(t *testing.T) {
	for kind, l := range limitersOfAllKinds() {
		first := spend(l.Take)
		require.Positive(t, first, kind)
		for range 2 {
			synctest.Test(t, func(t *testing.T) {
				require.Equal(t, first, spend(l.Take), "%s: in a bubble", kind)
				time.Sleep(time.Hour)
				require.Equal(t, first, spend(l.Take), "%s: after an hour in the bubble", kind)
				if h, ok := l.(interface{ Hold(d time.Duration) }); ok {
					h.Hold(24 * time.Hour)
				}
				if w, ok := l.(limiter.WaitLimiter); ok {
					require.Error(t, limiter.WaitAtMost(t.Context(), w, 1, time.Second), kind)
				}
			})
		}
		require.Equal(t, first, spend(l.Take), "%s: with the real clock", kind)
		synctest.Test(t, func(t *testing.T) {
			if w, ok := l.(limiter.WaitLimiter); ok {
				require.NoError(t, limiter.WaitAtMost(t.Context(), w, 1, time.Second), kind)
			}
		})
	}
}

// The same with TakeAt, as weirhttp calls limiters.
func TestALimiterStartsAgainWithEachClockThatIsGiven(t *testing.T) {
	for kind, l := range limitersOfAllKinds() {
		take := func(n int) limiter.Result { return l.TakeAt(time.Now(), n) }
		first := spend(take)
		for range 2 {
			synctest.Test(t, func(t *testing.T) {
				require.Equal(t, first, spend(take), "%s: in a bubble", kind)
				time.Sleep(2 * time.Hour)
				require.Equal(t, first, spend(take), "%s: after two hours in the bubble", kind)
			})
		}
		require.Equal(t, first, spend(take), "%s: with the real clock", kind)
	}
}

// A time that is earlier than one given before is that of a slow caller, or of an event. It never
// adds tokens.
func TestAStaleTimeIsNoNewClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for kind, l := range limitersOfAllKinds() {
			spend(l.Take)
			time.Sleep(10 * time.Hour)
			first := spend(l.Take)
			require.Positive(t, first, kind)
			for _, back := range []time.Duration{1, time.Second, time.Minute, 2 * time.Hour, 365 * 24 * time.Hour, 30 * 365 * 24 * time.Hour} {
				require.False(t, l.TakeAt(time.Now().Add(-back), 1).OK, "%s, %s ago", kind, back)
			}
			require.False(t, l.Take(1).OK, kind)
		}
	})
}

// A reservation of tokens that come later is no sign of another clock.
func TestADebtIsNoNewClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerSecond(1), Burst: 5})
		for range 1000 {
			require.True(t, b.Reserve(5, 10*time.Hour).OK)
		}
		require.False(t, b.Take(1).OK)
		time.Sleep(time.Minute)
		require.False(t, b.Take(1).OK)
		require.Less(t, b.Tokens(), -4000.0)
	})
}
