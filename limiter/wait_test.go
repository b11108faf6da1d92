package limiter_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/sentinel"
	"github.com/weir-go/weir/limiter"
)

func TestWaitServesInOrderOfArrival(t *testing.T) { // scenario 31
	synctest.Test(t, func(t *testing.T) {
		l := newCallers(t, limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerSecond(1), Burst: 5}))
		l.start(t.Context(), "all", 5)
		l.start(t.Context(), "first", 1)
		l.start(t.Context(), "big", 5)
		l.start(t.Context(), "last", 1)
		l.requireResults(arrival{"all", 0, nil}, arrival{"first", 1 * sec, nil}, arrival{"big", 6 * sec, nil}, arrival{"last", 7 * sec, nil})
	})
}

func TestTakeIsRefusedWhileACallerWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerSecond(1), Burst: 3})
		l := newCallers(t, b)
		b.Take(2)
		l.start(t.Context(), "two", 2)
		require.Equal(t, "refused 0/3 retry 2s reset 4s", resultText(b.Take(1)), "the one token is for the waiter")
		require.Equal(t, "refused 0/3 retry 4s reset 4s", resultText(b.Take(3)))
		require.Equal(t, "refused 0/3 retry 1s reset 4s", resultText(b.Take(0)))
		l.requireResults(arrival{"two", sec, nil})
		require.Equal(t, "refused 0/3 retry 1s reset 3s", resultText(b.Take(1)))
		time.Sleep(sec)
		require.True(t, b.Take(1).OK, "RetryAfter includes the waiters")
	})
}

func TestTakeWhileTheFirstWaiterIsServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.Per(1, time.Hour), Burst: 5})
		for range 50 {
			b.Take(5)
			l := newCallers(t, b)
			l.start(t.Context(), "head", 1)
			b.Refund(5) // enough for both, but the first waiter may not be awake yet
			taken := 1
			if r := b.Take(1); r.OK {
				taken++
			} else {
				require.EqualValues(t, 1, r.RetryAfter)
			}
			l.requireResults(arrival{"head", 0, nil})
			require.Equal(t, 5-taken, b.Take(0).Remaining)
			b.Refund(5)
		}
	})
}

func TestNothingRemainsWhileACallerWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		config := limiter.WindowConfig{Limit: 3, Window: sec}
		w := limiter.NewSlidingLog(config)
		l := newCallers(t, w)
		w.Take(2)
		l.start(t.Context(), "two", 2)
		require.Equal(t, "refused 0/3 retry 1s reset 1s", resultText(w.Take(0)))
		require.Equal(t, "refused 0/3 retry 1s reset 1s", resultText(w.Take(1)))
		l.requireResults(arrival{"two", sec, nil})
	})
}

func TestWaitQueueIsBounded(t *testing.T) { // scenario 35
	synctest.Test(t, func(t *testing.T) {
		b := limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerSecond(1), Burst: 1, MaxWaiters: 2})
		l := newCallers(t, b)
		b.Take(1)
		l.start(t.Context(), "one", 1)
		l.start(t.Context(), "two", 1)
		err := b.Wait(t.Context(), 1)
		requireQueueFull(t, err)
		require.ErrorIs(t, err, limiter.ErrLimited)
		require.ErrorIs(t, err, sentinel.ErrRefused)
		l.requireResults(arrival{"one", 1 * sec, nil}, arrival{"two", 2 * sec, nil})
	})
}

func TestRefundServesTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.Per(1, time.Hour), Burst: 3})
		l := newCallers(t, b)
		b.Take(3)
		l.start(t.Context(), "one", 1)
		l.start(t.Context(), "two", 2)
		b.Refund(3)
		l.requireResults(arrival{"one", 0, nil}, arrival{"two", 0, nil})
	})
}

func TestWaitWithTokensAllocatesNothing(t *testing.T) {
	b := limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerSecond(1), Burst: 1 << 20})
	ctx := t.Context()
	require.Zero(t, testing.AllocsPerRun(1000, func() {
		if b.Wait(ctx, 1) != nil {
			t.Fatal("refused")
		}
	}))
}
