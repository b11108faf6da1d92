package limiter_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/limiter"
)

func namedConcurrency(c limiter.ConcurrencyConfig) *limiter.Concurrency {
	c.Name = "logins"
	return limiter.NewConcurrency(c)
}

func TestConcurrencyWithANameCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := namedConcurrency(limiter.ConcurrencyConfig{Limit: 2, MaxWaiters: 2})
		one, ok := l.TryAcquire()
		require.True(t, ok)
		two, err := l.Acquire(t.Context())
		require.NoError(t, err)
		none, ok := l.TryAcquire()
		require.False(t, ok)
		require.Nil(t, none)

		var three func()
		go func() { three, _ = l.Acquire(t.Context()) }()
		synctest.Wait()
		ctx, leave := context.WithCancel(t.Context())
		go func() { _, err = l.Acquire(ctx) }()
		synctest.Wait()
		require.EqualValues(t, 2, l.Stats().Waiting)

		none, full := l.Acquire(t.Context())
		require.Nil(t, none)
		require.ErrorIs(t, full, limiter.ErrQueueFull)
		require.EqualError(t, full, "limiter logins: queue is full (limit 2), retry in 0s")

		time.Sleep(3 * time.Second)
		leave()
		synctest.Wait()
		require.ErrorIs(t, err, context.Canceled)
		one()
		one()
		synctest.Wait()
		require.NotNil(t, three)
		require.Equal(t, 2, l.InFlight())
		two()
		three()
		require.Zero(t, l.InFlight())
		_, err = l.Acquire(ctx)
		require.Equal(t, context.Canceled, err, "not counted, because the context was done before")

		require.Equal(t, limiter.Stats{
			Allowed: 2, Waited: 1,
			Refused: 2, Cancelled: 1, Near: 1,
		}, l.Stats())
		waits := l.Waits()
		require.EqualValues(t, 1, waits.Count())
		require.Equal(t, 3*time.Second, waits.Mean())
		require.Equal(t, map[string]float64{
			"weir.limiter.requests allowed": 2, "weir.limiter.requests waited": 1,
			"weir.limiter.requests refused": 2, "weir.limiter.requests cancelled": 1,
			"weir.limiter.tokens allowed": 2, "weir.limiter.tokens waited": 1,
			"weir.limiter.tokens refused": 2, "weir.limiter.tokens cancelled": 1,
			"weir.limiter.near_limit": 1, "weir.limiter.waiting": 0, "weir.limiter.available": 2, "weir.limiter.limit": 2,
		}, observed(t, l))
	})
}

func TestConcurrencyShowsALoweredLimit(t *testing.T) {
	l := namedConcurrency(limiter.ConcurrencyConfig{Limit: 3})
	for range 3 {
		_, ok := l.TryAcquire()
		require.True(t, ok)
	}
	require.NoError(t, l.SetLimit(1))
	figures := observed(t, l)
	require.Zero(t, figures["weir.limiter.available"], "never negative")
	require.EqualValues(t, 1, figures["weir.limiter.limit"])
}

func TestConcurrencyWithANameInShadowMode(t *testing.T) {
	l := namedConcurrency(limiter.ConcurrencyConfig{Limit: 1, Shadow: true})
	room, ok := l.TryAcquire()
	require.True(t, ok)
	none, ok := l.TryAcquire()
	require.True(t, ok)
	none()
	require.Equal(t, 1, l.InFlight(), "a call without a slot releases none")
	none, err := l.Acquire(t.Context())
	require.NoError(t, err, "in shadow mode no caller waits")
	none()
	room()
	require.Zero(t, l.InFlight())
	stats := l.Stats()
	require.EqualValues(t, 1, stats.Allowed)
	require.EqualValues(t, 2, stats.Shadowed)
	require.Zero(t, stats.Refused)
	require.EqualValues(t, 2, observed(t, l)["weir.limiter.requests shadowed"])
}

func TestConcurrencyShadowNeedsAName(t *testing.T) {
	require.PanicsWithError(t, "limiter: Shadow is set without a Name, must have both", func() {
		limiter.NewConcurrency(limiter.ConcurrencyConfig{Limit: 1, Shadow: true})
	})
}

func TestConcurrencyWithANameObservesWithoutAllocating(t *testing.T) {
	l := namedConcurrency(limiter.ConcurrencyConfig{Limit: 1})
	require.Zero(t, testing.AllocsPerRun(100, func() {
		for range l.Observe {
		}
	}))
}

func TestConcurrencyWithoutANameCountsNothing(t *testing.T) {
	l := limiter.NewConcurrency(limiter.ConcurrencyConfig{Limit: 1})
	release, ok := l.TryAcquire()
	require.True(t, ok)
	_, ok = l.TryAcquire()
	require.False(t, ok)
	release()
	require.Empty(t, l.Name())
	require.Zero(t, l.Stats())
	require.Empty(t, observed(t, l))
}
