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

// observed are the figures of a source, by instrument and outcome.
func observed(t *testing.T, s stat.Source) map[string]float64 {
	figures := map[string]float64{}
	for series, value := range s.Observe {
		key := series.Instrument.Name
		require.Equal(t, "logins", series.Values[0])
		if len(series.Values) > 1 {
			key += " " + series.Values[1]
		}
		require.NotContains(t, figures, key, "one value a series")
		figures[key] = value
	}
	return figures
}

func named(l limiter.TimedLimiter, c limiter.NamedConfig) *limiter.Named {
	return limiter.NewNamed("logins", l, c)
}

func TestNamedCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := named(limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerSecond(1), Burst: 10, MaxWaiters: 1}), limiter.NamedConfig{})
		require.Equal(t, "logins", l.Name())
		require.True(t, l.Take(7).OK)
		require.NoError(t, l.Wait(t.Context(), 2)) // at once
		require.False(t, l.Take(2).OK)
		require.True(t, l.Take(0).OK)

		line := newLine(t, l)
		ctx, leave := context.WithCancel(t.Context())
		line.enter(ctx, "leaves", 3)
		require.EqualValues(t, 1, l.Stats().Waiting)
		err := l.Wait(t.Context(), 1)
		require.ErrorIs(t, err, limiter.ErrQueueFull)
		require.EqualError(t, err, "limiter logins: queue is full (limit 10), retry in 3s")
		leave()
		line.all.Wait()
		require.NoError(t, l.Wait(t.Context(), 4)) // after three seconds
		require.Equal(t, 3*sec, time.Since(line.began))
		require.Equal(t, context.Canceled, l.Wait(ctx, 1), "is not counted: it never asked")

		require.Equal(t, limiter.Stats{
			Allowed: 2, Waited: 1,
			Refused: 2, Cancelled: 1, Near: 1,
		}, l.Stats())
		require.Equal(t, map[string]float64{
			"weir.limiter.requests allowed": 2, "weir.limiter.requests waited": 1,
			"weir.limiter.requests refused": 2, "weir.limiter.requests cancelled": 1,
			"weir.limiter.permits allowed": 9, "weir.limiter.permits waited": 4,
			"weir.limiter.permits refused": 3, "weir.limiter.permits cancelled": 3,
			"weir.limiter.near_limit": 1, "weir.limiter.waiting": 0, "weir.limiter.available": 0, "weir.limiter.limit": 10,
			"weir.limiter.period": 10,
		}, observed(t, l))
	})
}

// Scenario 70: a limit in shadow mode refuses nothing and says what it would have; and how near the limit things are.
func TestNamedShadow(t *testing.T) {
	l := named(fixedWindow(10, time.Minute), limiter.NamedConfig{Shadow: true})
	for range 13 {
		require.True(t, l.TakeAt(start, 1).OK)
	}
	require.True(t, l.TakeAt(start, 11).OK)
	stats := l.Stats()
	require.EqualValues(t, 10, stats.Allowed)
	require.EqualValues(t, 4, stats.Shadowed)
	require.Zero(t, stats.Refused)
	require.EqualValues(t, 2, stats.Near, "the ninth and the tenth")
	require.EqualValues(t, 14, observed(t, l)["weir.limiter.permits shadowed"])

	l = named(limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerHour(1), Burst: 1}), limiter.NamedConfig{Shadow: true})
	for range 3 {
		require.NoError(t, l.Wait(t.Context(), 1), "and nobody waits")
	}
}

func TestNamedSplitsARequestThatCrossesTheThreshold(t *testing.T) {
	l := named(fixedWindow(10, time.Minute), limiter.NamedConfig{Near: 0.5})
	l.TakeAt(start, 4)
	require.Zero(t, l.Stats().Near)
	l.TakeAt(start, 4) // the fifth is within, three are near
	require.EqualValues(t, 3, l.Stats().Near)
	l.TakeAt(start, 2)
	require.EqualValues(t, 5, l.Stats().Near)
}

// taker is a limiter that cannot be waited for.
type taker struct{ limiter.TimedLimiter }

func TestNamedPassesThrough(t *testing.T) {
	b := bucket(limiter.PerSecond(1), 2)
	l := named(taker{b}, limiter.NamedConfig{})
	require.True(t, l.TakeAt(start, 2).OK)
	l.Refund(1)
	require.Equal(t, 1, b.TakeAt(start, 0).Remaining)

	l = named(taker{limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerHour(1), Burst: 1})}, limiter.NamedConfig{})
	require.NoError(t, l.Wait(t.Context(), 1))
	err := l.Wait(t.Context(), 1)
	require.ErrorIs(t, err, limiter.ErrLimited)
	require.ErrorContains(t, err, "limiter logins: no permits left (limit 1), retry in 59m59")

	l = named(bucket(limiter.Unlimited(), 0), limiter.NamedConfig{})
	require.True(t, l.TakeAt(start, 5).OK)
	require.Zero(t, l.Stats().Near)
	require.NotContains(t, observed(t, l), "weir.limiter.available")
}

func TestNamedRefusesWhatMakesNoSense(t *testing.T) {
	require.PanicsWithError(t, "limiter: Near is 1.5, must be above 0 and at most 1 (or 0 for the default)", func() {
		named(bucket(limiter.PerSecond(1), 1), limiter.NamedConfig{Near: 1.5})
	})
	require.PanicsWithError(t, "limiter: the limiter to name is nil", func() { named(nil, limiter.NamedConfig{}) })
}

func TestNamedTakeAllocatesNothing(t *testing.T) {
	l := named(limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerSecond(10), Burst: 100}), limiter.NamedConfig{})
	require.Zero(t, testing.AllocsPerRun(1000, func() { l.Take(1); l.Take(200) }))
	require.Zero(t, testing.AllocsPerRun(100, func() {
		for range l.Observe {
		}
	}))
}

func TestPermitsThatWereRefusedNeverWrapAround(t *testing.T) {
	l := named(limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerHour(1), Burst: 1}), limiter.NamedConfig{})
	for i := range 3 {
		require.False(t, l.Take(math.MaxInt).OK)
		want := min(float64(i+1)*math.MaxInt, math.MaxInt64) // a 32-bit machine has room for all three
		require.InDelta(t, want, observed(t, l)["weir.limiter.permits refused"], 0)
	}
}

func TestAWaitForNothingIsGrantedWhateverTheMode(t *testing.T) {
	for _, c := range []limiter.NamedConfig{{}, {Shadow: true}} {
		bucket := limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerHour(1), Burst: 1})
		bucket.Hold(hour)
		group := limiter.NewGroup(limiter.GroupConfig[int]{Rate: limiter.PerHour(1), Name: "x", Named: c})
		group.Get(1).Hold(hour)
		require.NoError(t, bucket.Wait(t.Context(), 0))
		require.NoError(t, limiter.NewNamed("x", bucket, c).Wait(t.Context(), 0))
		require.NoError(t, limiter.NewNamed("x", struct{ limiter.Limiter }{bucket}, c).Wait(t.Context(), 0), "one that is no WaitLimiter")
		require.NoError(t, group.Get(1).Wait(t.Context(), 0))
	}
}
