package limiter_test

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/limiter"
)

func TestAJointTakesFromAllLimitersOrNone(t *testing.T) {
	second, minute := newSlidingLog(2, sec), newSlidingLog(3, time.Minute)
	both := limiter.NewJoint("", second, minute)
	runSteps(t, both, step{0, 0, "ok 2/2 reset 0s"}, step{0, 3, "refused 2/2 retry never reset 0s"}, step{0, -1, "refused 2/2 retry never reset 0s"},
		step{0, 2, "ok 0/2 reset 1m0s"}, step{0, 1, "refused 0/2 retry 1s reset 1m0s"})
	runSteps(t, minute, step{0, 0, "ok 1/3 reset 1m0s"}) // the refused request took nothing here
	runSteps(t, both, step{sec, 2, "refused 1/2 retry 59s reset 59s"}, step{sec, 1, "ok 0/2 reset 1m0s"})

	runSteps(t, both, step{2 * time.Minute, 1, "ok 1/2 reset 1m0s"})
	both.Refund(1)
	runSteps(t, both, step{2 * time.Minute, 0, "ok 2/2 reset 0s"})
}

// Scenario 57, on one machine.
func TestAllOfThreeLimits(t *testing.T) {
	second, minute, hourly := newSlidingLog(10, sec), newSlidingLog(100, time.Minute), newSlidingLog(1000, hour)
	all := limiter.NewJoint("", second, minute, hourly)
	require.Equal(t, 10, offerEvenly(all, 11, ms))
	require.Equal(t, sec, all.TakeAt(start.Add(ms), 1).RetryAfter+ms, "RetryAfter is that of the limit per second")
	require.Equal(t, 90, minute.TakeAt(start.Add(ms), 0).Remaining)
	require.Equal(t, 990, hourly.TakeAt(start, 0).Remaining)
}

func TestAllWithoutLimiters(t *testing.T) {
	runSteps(t, limiter.NewJoint(""), step{0, 1e9, "ok"})
	require.Equal(t, math.MaxInt, limiter.NewJoint("").Take(5).Remaining)
	require.PanicsWithError(t, "limiter: NewJoint: limiters[1] is nil", func() { limiter.NewJoint("", newSlidingLog(1, sec), nil) })
}

func TestAllWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := limiter.NewJoint("",
			limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerSecond(10), Burst: 1}),
			limiter.NewSlidingLog(limiter.WindowConfig{Limit: 3, Window: time.Minute}))
		l := newCallers(t, all)
		for _, who := range []string{"a", "b", "c", "d"} {
			l.start(t.Context(), who, 1)
		}
		require.Equal(t, "refused 0/1 retry 1m0s reset 1m0s", resultText(all.Take(1)))
		require.ErrorIs(t, limiter.WaitAtMost(t.Context(), all, 2, sec), limiter.ErrLimited)
		l.requireResults(arrival{"a", 0, nil}, arrival{"b", 100 * ms, nil}, arrival{"c", 200 * ms, nil}, arrival{"d", 60 * sec, nil})
	})
}

// Two Joints of the same limiters never exceed their limits, whatever happens between a peek and a
// take.
func TestAllNeverAllowsTooManyDuringTraffic(t *testing.T) {
	for range 50 {
		a, b := newBucket(limiter.Per(1, time.Hour), 40), newSlidingLog(30, hour)
		one, two := limiter.NewJoint("", a, b), limiter.NewJoint("", b, a)
		count := func(l limiter.TimedLimiter) func() int {
			return func() (n int) {
				for range 40 {
					if l.TakeAt(start, 1).OK {
						n++
					}
				}
				return n
			}
		}
		results := make(chan int, 2)
		go func() { results <- count(one)() }()
		go func() { results <- count(two)() }()
		sum := <-results + <-results
		require.LessOrEqual(t, sum, 30)
		require.Equal(t, 40-sum, a.TakeAt(start, 0).Remaining, "tokens of refused requests were given back")
		require.Equal(t, 30-sum, b.TakeAt(start, 0).Remaining)
	}
}

// A wait of RetryAfter is enough, also behind other waiters.
func TestRetryAfterOfAJointIncludesWaiters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := limiter.NewJoint("",
			limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerSecond(1), Burst: 3}),
			limiter.NewSlidingLog(limiter.WindowConfig{Limit: 100, Window: time.Hour}),
		)
		require.True(t, all.Take(3).OK)
		callers := newCallers(t, all)
		callers.start(t.Context(), "three", 3)
		r := all.Take(1)
		require.Equal(t, 4*sec, r.RetryAfter)
		time.Sleep(r.RetryAfter)
		require.True(t, all.Take(1).OK)
		callers.requireResults(arrival{"three", 3 * sec, nil})
	})
}
