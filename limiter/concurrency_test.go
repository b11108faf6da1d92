package limiter_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/limiter"
)

func TestConcurrencyBoundsCallsInFlight(t *testing.T) {
	l := limiter.NewConcurrency(limiter.ConcurrencyConfig{Limit: 2})
	first, err := l.Acquire(t.Context())
	require.NoError(t, err)
	second, ok := l.TryAcquire()
	require.True(t, ok)
	_, ok = l.TryAcquire()
	require.False(t, ok)
	require.Equal(t, 2, l.InFlight())
	for range 3 {
		first() // counts once
	}
	require.Equal(t, 1, l.InFlight())
	second()
	require.Zero(t, l.InFlight())
}

func TestConcurrencyServesInOrderOfArrival(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := limiter.NewConcurrency(limiter.ConcurrencyConfig{Limit: 1, MaxWaiters: 3})
		release, _ := l.TryAcquire()
		began, order := time.Now(), make(chan string, 4)
		call := func(ctx context.Context, who string) {
			go func() {
				release, err := l.Acquire(ctx)
				if err != nil {
					order <- who + " gives up"
					return
				}
				order <- who
				time.Sleep(sec)
				release()
			}()
			synctest.Wait()
		}
		ctx, leave := context.WithCancel(t.Context())
		call(t.Context(), "a")
		call(ctx, "b")
		call(t.Context(), "c")
		_, err := l.Acquire(t.Context())
		require.ErrorIs(t, err, limiter.ErrQueueFull)
		leave()
		require.Equal(t, "b gives up", <-order)
		release()
		_, ok := l.TryAcquire()
		require.False(t, ok, "no caller overtakes the waiters")
		synctest.Wait()
		require.Equal(t, []string{"a", "c"}, []string{<-order, <-order})
		require.Equal(t, sec, time.Since(began))
		time.Sleep(sec)
		synctest.Wait()
		require.Zero(t, l.InFlight())
	})
}

func TestConcurrencyGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := limiter.NewConcurrency(limiter.ConcurrencyConfig{Limit: 1})
		cancelled, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := l.Acquire(cancelled)
		require.Equal(t, context.Canceled, err)
		release, err := l.Acquire(t.Context())
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), sec)
		defer cancel()
		_, err = l.Acquire(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, err, limiter.ErrLimited)
		release()
		_, ok := l.TryAcquire()
		require.True(t, ok)
	})
}

func TestConcurrencyChangesItsLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := limiter.NewConcurrency(limiter.ConcurrencyConfig{Limit: 1})
		first, _ := l.TryAcquire()
		var flying atomic.Int64
		for range 3 {
			go func() {
				release, _ := l.Acquire(t.Context())
				flying.Add(1)
				time.Sleep(sec)
				release()
			}()
		}
		synctest.Wait()
		require.NoError(t, l.SetLimit(3))
		synctest.Wait()
		require.EqualValues(t, 2, flying.Load())
		require.EqualError(t, l.SetLimit(0), "limiter: Limit is 0, must be at least 1")
		require.NoError(t, l.SetLimit(1))
		first()
		synctest.Wait()
		require.EqualValues(t, 2, flying.Load(), "calls beyond the lower limit continue, and others wait")
		require.Equal(t, 1, l.Limit())
		time.Sleep(3*sec + 1)
		require.Zero(t, l.InFlight())
	})
	require.PanicsWithError(t, "limiter: Limit is 0, must be at least 1\nlimiter: MaxWaiters is -2, must be at least 1 (or 0 for no bound)",
		func() { limiter.NewConcurrency(limiter.ConcurrencyConfig{MaxWaiters: -2}) })
}

func TestConcurrencyStress(t *testing.T) {
	l := limiter.NewConcurrency(limiter.ConcurrencyConfig{Limit: 3})
	var flying, most atomic.Int64
	done := together(20, func() bool {
		for range 200 {
			release, err := l.Acquire(t.Context())
			if err != nil {
				return false
			}
			now := flying.Add(1)
			for m := most.Load(); now > m && !most.CompareAndSwap(m, now); m = most.Load() {
			}
			flying.Add(-1)
			release()
		}
		return true
	})
	require.Equal(t, 20, done)
	require.LessOrEqual(t, most.Load(), int64(3))
	require.Zero(t, l.InFlight())
}
