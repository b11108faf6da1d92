package limiter_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/sentinel"
	"github.com/weir-go/weir/limiter"
)

func TestWaitFailsAtOnceIfTheDeadlineIsTooEarly(t *testing.T) { // scenario 29
	synctest.Test(t, func(t *testing.T) {
		b := limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerSecond(10), Burst: 2})
		b.Take(2)
		ctx, cancel := context.WithTimeout(t.Context(), 100*ms)
		defer cancel()
		began := time.Now()
		err := b.Wait(ctx, 2)
		require.Zero(t, time.Since(began))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, err, limiter.ErrLimited)
		require.ErrorIs(t, err, sentinel.ErrRefused)
		var limited *limiter.LimitedError
		require.ErrorAs(t, err, &limited)
		require.Equal(t, 200*ms, limited.RetryAfter())
		require.EqualError(t, err, "limiter: deadline cannot be met (limit 2), retry in 200ms")

		require.NoError(t, b.Wait(ctx, 1), "a deadline that can just be met")
		require.Equal(t, 100*ms, time.Since(began))
	})
}

func TestADeadlineDuringAWaitIsARefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerSecond(1), Burst: 1})
		b.Take(1)
		ctx, cancel := context.WithTimeout(t.Context(), 1500*ms)
		defer cancel()
		l := newCallers(t, b)
		l.start(ctx, "unlucky", 1)
		require.NoError(t, b.SetRate(limiter.PerMinute(1)))
		l.all.Wait()
		require.Equal(t, 1500*ms, l.log[0].at)
		require.ErrorIs(t, l.log[0].err, context.DeadlineExceeded)
		require.ErrorIs(t, l.log[0].err, sentinel.ErrRefused)
		require.Zero(t, b.Take(0).RetryAfter, "the queue is not empty")
	})
}

func TestABoundedWaitGivesUpAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerSecond(10), Burst: 1})
		began := time.Now()
		require.NoError(t, limiter.WaitAtMost(t.Context(), b, 1, 0))
		for _, limit := range []time.Duration{-1, 0, 99 * ms} {
			err := limiter.WaitAtMost(t.Context(), b, 1, limit)
			require.ErrorIs(t, err, limiter.ErrLimited)
			require.NotErrorIs(t, err, context.DeadlineExceeded)
		}
		require.Zero(t, time.Since(began))
		require.NoError(t, limiter.WaitAtMost(t.Context(), b, 1, 100*ms))
		require.Equal(t, 100*ms, time.Since(began))
	})
}

func TestWaitRefusesTooManyTokensAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerSecond(10), Burst: 5})
		for _, n := range []int{6, -1} {
			err := b.Wait(t.Context(), n)
			require.EqualError(t, err, "limiter: more than the limit (limit 5)")
			var limited *limiter.LimitedError
			require.ErrorAs(t, err, &limited)
			require.Equal(t, limiter.Never, limited.RetryAfter())
		}
		require.NoError(t, b.Wait(t.Context(), 0))
		require.Equal(t, 5, b.Take(0).Remaining)

		never := limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerSecond(1e-300), Burst: 1})
		require.NoError(t, never.Wait(t.Context(), 1))
		require.EqualError(t, never.Wait(t.Context(), 1), "limiter: no tokens left (limit 1)", "it must not sleep forever")
	})
}

// Scenario 4: no caller waits for a limiter that allows nothing.
func TestWaitWithABurstOfOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerSecond(1), Burst: limiter.Off})
		err := b.Wait(t.Context(), 1)
		require.ErrorIs(t, err, limiter.ErrLimited)
		refusal, ok := errors.AsType[*limiter.LimitedError](err)
		require.True(t, ok)
		require.Equal(t, limiter.Never, refusal.RetryAfter())
		require.Zero(t, b.Tokens())
		require.NoError(t, b.SetBurst(2))
		require.NoError(t, b.Wait(t.Context(), 2), "tokens are added at the rate")
		require.NoError(t, b.SetBurst(limiter.Off))
		require.False(t, b.Take(1).OK)
	})
}
