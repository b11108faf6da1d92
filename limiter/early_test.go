package limiter_test

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/limiter/guava"
)

// limitersFromTheFuture returns limiters created on the real clock, like package variables. For a
// synctest bubble, which begins in the year 2000, that is in the future.
func limitersFromTheFuture() map[string]limiter.WaitLimiter {
	c := limiter.TokenBucketConfig{Rate: limiter.PerSecond(3), Burst: 3}
	return map[string]limiter.WaitLimiter{
		"bucket":      limiter.NewTokenBucket(c),
		"fast bucket": limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerSecond(1e9 / 7.0), Burst: 3}),
		"named":       limiter.NewJoint("early", limiter.NewTokenBucket(c)),
		"joint":       limiter.NewJoint("", limiter.NewTokenBucket(c), limiter.NewFixedWindow(limiter.WindowConfig{Limit: 100, Window: sec})),
		"key":         limiter.NewGroup(limiter.GroupConfig[string]{Rate: c.Rate, Burst: 3}).Get("k"),
		"fixed":       limiter.NewFixedWindow(limiter.WindowConfig{Limit: 3, Window: sec}),
		"sliding":     limiter.NewSlidingWindow(limiter.WindowConfig{Limit: 3, Window: sec}),
		"log":         limiter.NewSlidingLog(limiter.WindowConfig{Limit: 3, Window: sec}),
		"leaky":       limiter.NewLeakyBucket(limiter.LeakyBucketConfig{Rate: c.Rate}),
		"smooth":      guava.NewSmoothBursty(guava.SmoothBurstyConfig{Rate: c.Rate}),
		"warm-up":     guava.NewSmoothWarmingUp(guava.SmoothWarmingUpConfig{Rate: c.Rate, WarmUp: sec}),
	}
}

// The limiters are used in a bubble, where no wait takes longer than seconds.
func TestALimiterWorksFromTheFirstTimeItIsGiven(t *testing.T) {
	limiters := limitersFromTheFuture()
	synctest.Test(t, func(t *testing.T) {
		for name, w := range limiters {
			l, takes := w.(waitingLimiter)
			if !takes || l.Take(0).Limit > 3 { // pacers have no limit
				began := time.Now()
				for range 4 {
					require.NoError(t, w.Wait(t.Context(), 1), name)
				}
				require.Greater(t, time.Since(began), 999*ms, name)
				require.Less(t, time.Since(began), 4*sec, name)
				continue
			}
			for round := range 3 {
				require.Equal(t, 3, l.Take(0).Remaining, "%s, round %d", name, round)
				require.True(t, l.Take(3).OK, "%s, round %d", name, round)
				require.False(t, l.Take(3).OK, "%s, round %d", name, round)
				time.Sleep(3 * sec)
			}
			if h, ok := l.(holdableLimiter); ok {
				h.Hold(sec)
				require.False(t, l.Take(1).OK, name)
				time.Sleep(sec)
				require.True(t, l.Take(1).OK, name)
			}
		}
	})
}

func TestALimiterWorksDecadesBeforeAndAfterItsCreation(t *testing.T) {
	for _, off := range []time.Duration{-36 * year, -10 * year, 10 * year, 36 * year} {
		for name, l := range map[string]limiter.TimedLimiter{
			"bucket": newBucket(limiter.PerSecond(3), 3), "whole": newBucket(limiter.PerSecond(5), 3), "slow": newBucket(limiter.Per(3, hour+1), 3),
			"key":   newGroup(limiter.GroupConfig[string]{Rate: limiter.PerSecond(3), Burst: 3}).Get("k"),
			"fixed": newFixedWindow(3, sec), "sliding": newSlidingWindow(3, sec, 100), "log": newSlidingLog(3, sec),
		} {
			runSteps(t, l, step{off, 3, "ok"}, step{off, 1, "refused"}, step{off + 2*hour, 3, "ok"}, step{off + 2*hour, 1, "refused"},
				step{off + hour, 1, "refused"}, step{math.MinInt64, 1, "refused"})
			require.NotEmpty(t, name)
		}
	}
	for _, off := range []time.Duration{-14 * year, 14 * year} {
		runSteps(t, newBucket(limiter.PerSecond(4e9), 3), step{off, 3, "ok"}, step{off, 1, "refused"}, step{off + 1, 3, "ok"}, step{off, 1, "refused"})
	}
}

func TestATokenBucketLastsForDecades(t *testing.T) {
	for r, years := range map[limiter.Rate]time.Duration{
		limiter.PerSecond(3): 73, limiter.PerSecond(5): 73, limiter.Per(7, 24*hour): 73, limiter.PerSecond(1.9e9): 73,
		limiter.PerSecond(2.1e9): 29, limiter.PerSecond(4e9): 29,
	} {
		b := newBucket(r, 3)
		runSteps(t, b, step{years*year - 24*hour, 3, "ok"}, step{years * year, 3, "ok"},
			// its last tokens were added before
			step{200 * year, 3, "ok"}, step{290 * year, 1, "refused"})
	}
}

// The first time given to a limiter is the time at which it begins, within decades of its creation.
func TestTakeAtBeginsAtAnyTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, off := range []time.Duration{-36 * year, -hour, 0, hour, 36 * year} {
			for name, w := range limitersFromTheFuture() {
				l, at := w.(limiter.TimedLimiter), time.Now().Add(off)
				require.True(t, l.TakeAt(at, 3).OK, "%s at %s", name, off)
				l.TakeAt(at, 3) // which a pacer with stored permits allows
				require.False(t, l.TakeAt(at, 3).OK, "%s at %s", name, off)
				require.True(t, l.TakeAt(at.Add(4*sec), 1).OK, "%s at %s", name, off)
			}
		}
	})
}

// The next token comes after the last time that a limiter can represent.
func TestAWaitOfCenturiesIsNever(t *testing.T) {
	for _, each := range []time.Duration{60 * year, 60*year + 1, 120 * year, 240 * year, math.MaxInt64} {
		b := newBucket(limiter.Per(1, each), 1)
		for b.ReserveAt(start, 1, limiter.Never).OK {
		}
		r := b.ReserveAt(start, 1, limiter.Never)
		require.Zero(t, r.Delay)
		require.Equal(t, limiter.Never, r.RetryAfter, "%s", each)
		runSteps(t, b, step{-70 * year, 1, "refused"}, step{math.MinInt64, 1, "refused"})
		require.Equal(t, limiter.Never, b.TakeAt(start, 1).RetryAfter)
	}
}

func TestARateOfMoreEventsThanAnInt64(t *testing.T) {
	for _, events := range []float64{1e19, 0x1p63, 0x1p64, 0x1p65} {
		r := limiter.Per(events, math.MaxInt64)
		require.NoError(t, r.Validate())
		n, period := r.Ratio()
		require.InEpsilon(t, events/math.MaxInt64, float64(n)/float64(period), 1e-15)
		b := newBucket(r, 1000)
		runSteps(t, b, step{0, 1000, "ok"})
		require.LessOrEqual(t, b.TokensAt(start.Add(100)), 100*events/math.MaxInt64+1)
		require.GreaterOrEqual(t, b.TokensAt(start.Add(100)), 100*events/math.MaxInt64-1)
	}
}
