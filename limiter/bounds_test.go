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

// lastMoment is the latest time that limiters can represent.
const lastMoment time.Duration = 1<<62 - 1

// waitingLimiter is a TimedLimiter that callers can wait for.
type waitingLimiter interface {
	limiter.TimedLimiter
	limiter.WaitLimiter
}

func TestConfigsAcceptTheirBounds(t *testing.T) {
	require.NoError(t, limiter.WindowConfig{Limit: math.MaxInt32, Window: 1}.Validate())
	require.NoError(t, limiter.WindowConfig{Limit: 1, Window: sec, Buckets: 100_000}.Validate())
	require.Error(t, limiter.WindowConfig{Limit: 1, Window: sec, Buckets: 100_001}.Validate())
	require.NoError(t, guava.SmoothWarmingUpConfig{Rate: limiter.PerSecond(1), WarmUp: us}.Validate())
}

func TestRatiosAtTheirBounds(t *testing.T) {
	const (
		longest = time.Duration(math.MaxInt64)
		trip    = time.Duration(1<<43 - 1) // of which 2^20 fit into a Duration
	)
	for _, c := range []struct {
		why    string
		rate   limiter.Rate
		events int64
		period time.Duration
	}{
		{"what is left of the fraction is rounding", limiter.Per(0.7, 1), 7, 10},
		{"one in 2^55 ns", limiter.Per(0x1p-55, 1), 1, 1 << 55},
		{"one in 2^63 ns, the first that is no Duration", limiter.Per(0.25, 1<<61), 1, longest},
		{"a next term far beyond the bound", limiter.Per(10_000.0/10_000_001, hour+1), 1, 1000 * (hour + 1)},
		{"a next term just beyond the bound", limiter.Per(1024.0/(1<<20+1), trip), 1, 1024 * trip},
	} {
		events, period := c.rate.Ratio()
		require.Equal(t, c.events, events, c.why)
		require.Equal(t, c.period, period, c.why)
	}
}

func TestTokensThatReturnAtTheLastTimeAreNotLost(t *testing.T) {
	for _, l := range []func() limiter.TimedLimiter{
		func() limiter.TimedLimiter { return newSlidingLog(1, hour) },
		func() limiter.TimedLimiter { return newBucket(limiter.Per(1, time.Hour), 1) },
	} {
		runSteps(t, l(), step{lastMoment - hour, 1, "ok 0/1 reset 1h0m0s"}, step{lastMoment - hour, 1, "refused 0/1 retry 1h0m0s reset 1h0m0s"})
		runSteps(t, l(), step{lastMoment - hour + 1, 1, "ok 0/1 reset never"})
	}
}

// The rate is not counted in nanoseconds, and the times would overflow.
func TestANewBucketIsFullAtAnyTime(t *testing.T) {
	for _, at := range []time.Duration{250 * year, -250 * year} {
		fresh := func() *limiter.TokenBucket { return newBucket(limiter.PerSecond(3), 3) }
		group := limiter.NewGroupAt(limiter.GroupConfig[int]{Rate: limiter.PerSecond(3), Burst: 3}, start)
		runSteps(t, fresh(), step{at, 0, "ok 3/3 reset 0s"})
		for how, r := range map[string]limiter.Result{
			"taken":    fresh().TakeAt(start.Add(at), 1),
			"reserved": fresh().ReserveAt(start.Add(at), 1, 0).Result,
			"of a key": group.Get(1).TakeAt(start.Add(at), 1),
		} {
			require.True(t, r.OK, "%s at %s", how, at)
			require.Equal(t, 2, r.Remaining, "%s at %s", how, at)
		}
	}
	// the fastest rate has the shortest life
	runSteps(t, newBucket(limiter.Per(4, 1), 8), step{-250 * year, 8, "ok"})
}

func TestSlowBucketsAreExact(t *testing.T) {
	runSteps(t, newBucket(limiter.Per(1, 1<<61), 1), step{0, 1, "ok"}, step{0, 1, "refused 0/1 retry " + durationText(1<<61) + " reset " + durationText(1<<61)})
	r := newBucket(limiter.Per(1, 292*year), 1<<30).ReserveAt(start, 1, 0)
	require.True(t, r.OK)
	require.Zero(t, r.Delay)
}

func TestADebtTooLongForTheNewRateIsOwedForever(t *testing.T) {
	b := newBucket(limiter.Per(1, 1), 1)
	for range 41 {
		require.True(t, b.ReserveAt(start, 1, sec).OK)
	}
	require.NoError(t, b.SetRateAt(start, limiter.Per(1, 100*year)))
	runSteps(t, b, step{0, 1, "refused 0/1 retry never reset never"})
}

func TestTakeFastTakesAllTokens(t *testing.T) {
	b := newBucket(limiter.PerSecond(1), 2)
	require.True(t, b.TakeFast(0, 2), "all at once")
	require.False(t, b.TakeFast(sec-1, 1))
	require.True(t, b.TakeFast(sec, 1))

	none := newBucket(limiter.PerSecond(1), limiter.Off)
	require.False(t, none.TakeFast(0, 1))
}

func TestABoundedWaitReportsNoTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerSecond(1), Burst: 1})
		require.True(t, b.Take(1).OK)
		require.EqualError(t, limiter.WaitAtMost(t.Context(), b, 1, 0), "limiter: no tokens left (limit 1), retry in 1s")
		require.EqualError(t, limiter.WaitAtMost(t.Context(), b, 1, 1), "limiter: no tokens left (limit 1), retry in 1s")
	})
}

// Reserve is called when there are enough tokens for the waiter and for the caller.
func TestNothingIsReservedBeforeTheFirstWaiterIsServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerSecond(1), Burst: 3})
		require.True(t, b.Take(3).OK)
		callers := newCallers(t, b)
		callers.start(t.Context(), "w", 1)
		later := time.Now().Add(10 * sec)
		require.Equal(t, "refused 0/3 retry 1ns reset 1s", resultText(b.ReserveAt(later, 1, hour).Result))
		peek := b.ReserveAt(later, 0, hour)
		require.False(t, peek.OK)
		require.Zero(t, peek.Remaining)
		require.False(t, peek.CancelAt(later))
		callers.requireResults(arrival{"w", sec, nil})
	})
}

func TestACancelledReservationWakesWaiters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.Per(1, time.Hour), Burst: 1})
		require.True(t, b.Take(1).OK)
		r := b.Reserve(1, hour)
		require.True(t, r.OK)
		callers := newCallers(t, b)
		callers.start(t.Context(), "w", 1)
		r.Refund(1)
		callers.requireResults(arrival{"w", hour, nil})
	})
}

func TestAnUnlimitedReservationCanBeCancelledUntilItIsDue(t *testing.T) {
	for after, want := range map[time.Duration]bool{0: true, 1: false} {
		r := newBucket(limiter.Unlimited(), 0).ReserveAt(start.Add(sec), 5, 0)
		require.True(t, r.OK)
		require.Equal(t, want, r.CancelAt(start.Add(sec+after)), "%s after", after)
	}
}
