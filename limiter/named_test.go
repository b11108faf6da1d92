package limiter_test

import (
	"context"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/stat"
)

// readMetrics returns the metrics of a source by instrument and outcome.
func readMetrics(t *testing.T, s stat.Source) map[string]float64 {
	figures := map[string]float64{}
	for series, value := range s.Observe {
		key := series.Instrument.Name
		require.Equal(t, "logins", series.Values[0])
		if len(series.Values) > 1 {
			key += " " + series.Values[1]
		}
		require.NotContains(t, figures, key, "a series is yielded twice")
		figures[key] = value
	}
	return figures
}

// namedJoint returns a Joint of one limiter with the name that observed expects.
func namedJoint(l limiter.Limiter) *limiter.Joint {
	return limiter.NewJoint("logins", l)
}

func TestAJointCountsItsRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := namedJoint(limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerSecond(1), Burst: 10, MaxWaiters: 1}))
		require.Equal(t, "logins", l.Name())
		require.True(t, l.Take(7).OK)
		require.NoError(t, l.Wait(t.Context(), 2)) // without a wait
		require.False(t, l.Take(2).OK)
		require.True(t, l.Take(0).OK)

		callers := newCallers(t, l)
		ctx, leave := context.WithCancel(t.Context())
		callers.start(ctx, "leaves", 3)
		require.EqualValues(t, 1, l.Stats().Waiting)
		err := l.Wait(t.Context(), 1)
		requireQueueFull(t, err)
		require.EqualError(t, err, "limiter logins: queue is full: MaxWaiters is 1 (limit 10), retry in 3s")
		leave()
		callers.all.Wait()
		require.NoError(t, l.Wait(t.Context(), 4)) // after three seconds
		require.Equal(t, 3*sec, time.Since(callers.began))
		require.Equal(t, context.Canceled, l.Wait(ctx, 1), "not counted, because the context was done before")

		require.Equal(t, limiter.Stats{
			Allowed: 2, Waited: 1,
			Refused: 2, Cancelled: 1, Near: 1,
		}, l.Stats())
		require.Equal(t, map[string]float64{
			"weir.limiter.requests allowed": 2, "weir.limiter.requests waited": 1,
			"weir.limiter.requests refused": 2, "weir.limiter.requests cancelled": 1,
			"weir.limiter.tokens allowed": 9, "weir.limiter.tokens waited": 4,
			"weir.limiter.tokens refused": 3, "weir.limiter.tokens cancelled": 3,
			"weir.limiter.near_limit": 1, "weir.limiter.waiting": 0, "weir.limiter.available": 0, "weir.limiter.limit": 10,
			"weir.limiter.period": 10, "weir.limiter.queue_full": 1,
		}, readMetrics(t, l))
	})
}

// Scenario 70: a limit in shadow mode refuses nothing. It counts the requests that it would refuse,
// and the tokens that were taken near the limit.
func TestShadowModeRefusesNothing(t *testing.T) {
	l := limiter.NewFixedWindowAt(limiter.WindowConfig{Limit: 10, Window: time.Minute, Name: "logins", Shadow: true}, start)
	for range 13 {
		require.True(t, l.TakeAt(start, 1).OK)
	}
	require.True(t, l.TakeAt(start, 11).OK)
	stats := l.Stats()
	require.EqualValues(t, 10, stats.Allowed)
	require.EqualValues(t, 4, stats.Shadowed)
	require.Zero(t, stats.Refused)
	require.EqualValues(t, 2, stats.Near, "the ninth and the tenth token")
	require.EqualValues(t, 14, readMetrics(t, l)["weir.limiter.tokens shadowed"])

	b := limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.Per(1, time.Hour), Burst: 1, Name: "logins", Shadow: true})
	for range 3 {
		require.NoError(t, b.Wait(t.Context(), 1), "in shadow mode no caller waits")
	}
}

func TestARequestThatCrossesTheNearThresholdIsSplit(t *testing.T) {
	l := namedJoint(newFixedWindow(20, time.Minute))
	l.TakeAt(start, 14)
	require.Zero(t, l.Stats().Near)
	l.TakeAt(start, 4) // the 16th token is 80 % of the limit
	require.EqualValues(t, 2, l.Stats().Near)
	l.TakeAt(start, 2)
	require.EqualValues(t, 4, l.Stats().Near)
}

// limiterWithoutWait is a limiter without Wait.
type limiterWithoutWait struct{ limiter.TimedLimiter }

func (l limiterWithoutWait) Refund(_ time.Time, n int) { limiter.Refund(l.TimedLimiter, n) }

func TestAJointOfOneBehavesLikeItsLimiter(t *testing.T) {
	b := newBucket(limiter.PerSecond(1), 2)
	l := namedJoint(limiterWithoutWait{b})
	require.True(t, l.TakeAt(start, 2).OK)
	limiter.Refund(l, 1)
	require.Equal(t, 1, b.TakeAt(start, 0).Remaining)

	l = namedJoint(limiterWithoutWait{limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.Per(1, time.Hour), Burst: 1})})
	require.NoError(t, l.Wait(t.Context(), 1))
	err := limiter.WaitAtMost(t.Context(), l, 1, 0)
	require.ErrorIs(t, err, limiter.ErrLimited)
	require.ErrorContains(t, err, "limiter logins: no tokens left (limit 1), retry in 59m59")

	l = namedJoint(newBucket(limiter.Unlimited(), 0))
	require.True(t, l.TakeAt(start, 5).OK)
	require.Zero(t, l.Stats().Near)
	require.NotContains(t, readMetrics(t, l), "weir.limiter.available")
}

// The Joint tries again after each RetryAfter.
func TestAJointWaitsForALimiterWithoutWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := namedJoint(limiterWithoutWait{limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerSecond(1), Burst: 1})})
		began := time.Now()
		require.NoError(t, l.Wait(t.Context(), 1))
		require.NoError(t, l.Wait(t.Context(), 1))
		require.Equal(t, sec, time.Since(began))
		require.Equal(t, limiter.Stats{Allowed: 1, Waited: 1, Near: 1}, l.Stats())
	})
}

// countingLimiter is a limiter that counts calls of its TakeAt.
type countingLimiter struct {
	limiter.TimedLimiter
	calls int
}

func (a *countingLimiter) TakeAt(t time.Time, n int) limiter.Result {
	a.calls++
	return a.TimedLimiter.TakeAt(t, n)
}

func TestAJointOfOneCallsItsLimiterOnce(t *testing.T) {
	a := &countingLimiter{TimedLimiter: newBucket(limiter.PerSecond(1), 1)}
	l := namedJoint(a)
	require.True(t, l.TakeAt(start, 1).OK)
	require.Equal(t, 1, a.calls)
	require.False(t, l.TakeAt(start, 1).OK)
	require.Equal(t, 2, a.calls)
}

func TestNewJointPanicsOnInvalidArguments(t *testing.T) {
	require.PanicsWithError(t, "limiter: NewJoint: limiters[0] is nil", func() { namedJoint(nil) })
}

func TestTakeOfANamedJointAllocatesNothing(t *testing.T) {
	l := namedJoint(limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerSecond(10), Burst: 100}))
	require.Zero(t, testing.AllocsPerRun(1000, func() { l.Take(1); l.Take(200) }))
	require.Zero(t, testing.AllocsPerRun(100, func() {
		for range l.Observe {
		}
	}))
}

func TestTheCountOfRefusedTokensNeverWrapsAround(t *testing.T) {
	l := namedJoint(limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.Per(1, time.Hour), Burst: 1}))
	for i := range 3 {
		require.False(t, l.Take(math.MaxInt).OK)
		// on a 32-bit machine the sum does not reach the maximum
		want := min(float64(i+1)*math.MaxInt, math.MaxInt64)
		require.InDelta(t, want, readMetrics(t, l)["weir.limiter.tokens refused"], 0)
	}
}

func TestAWaitForZeroTokensIsAllowedInAnyState(t *testing.T) {
	for _, isShadow := range []bool{false, true} {
		bucket := limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.Per(1, time.Hour), Burst: 1})
		bucket.Hold(hour)
		group := limiter.NewGroup(limiter.GroupConfig[int]{Rate: limiter.Per(1, time.Hour), Name: "x", Shadow: isShadow})
		group.Get(1).Hold(hour)
		require.NoError(t, bucket.Wait(t.Context(), 0))
		require.NoError(t, limiter.NewJoint("x", bucket).Wait(t.Context(), 0))
		require.NoError(t, limiter.NewJoint("x", struct{ limiter.Limiter }{bucket}).Wait(t.Context(), 0), "a limiter that is not a WaitLimiter")
		require.NoError(t, group.Get(1).Wait(t.Context(), 0))
	}
}
