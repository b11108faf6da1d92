package limiter_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/limiter/guava"
)

// The rate becomes so low that the next token comes after the life of the bucket.
func TestATurnBeyondTheLifeOfABucketNeverComes(t *testing.T) {
	for _, c := range []struct {
		age   time.Duration
		burst int
		slow  time.Duration
		want  string
	}{
		{80 * year, 1, 36 * year, "refused 0/1 retry never reset never"}, // in nanoseconds
		{0, 3, 100 * year, "refused 0/3 retry never reset never"},        // in longer units
	} {
		synctest.Test(t, func(t *testing.T) {
			b := limiter.NewTokenBucketAt(limiter.TokenBucketConfig{Rate: limiter.PerSecond(1), Burst: c.burst}, time.Now().Add(-c.age))
			require.True(t, b.Take(c.burst).OK)
			ctx, leave := context.WithCancel(t.Context())
			callers := newCallers(t, b)
			for range 30 {
				callers.start(ctx, "w", 1)
			}
			require.NoError(t, b.SetRate(limiter.Per(1, c.slow)))
			require.Equal(t, c.want, resultText(b.Take(c.burst)))
			leave()
		})
	}
}

func TestALeakyBucketAcceptsUpToItsCapacity(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := limiter.NewLeakyBucket(limiter.LeakyBucketConfig{Rate: limiter.PerSecond(1), Capacity: 3})
		began := time.Now()
		require.NoError(t, b.Wait(t.Context(), 0))
		require.NoError(t, b.Wait(t.Context(), 3))
		require.Zero(t, time.Since(began))
	})
}

func TestALeakyBucketCountsWaiters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := limiter.NewLeakyBucket(limiter.LeakyBucketConfig{Rate: limiter.PerSecond(2), Capacity: 6})
		callers := newCallers(t, b)
		for _, who := range []string{"a", "b", "c"} {
			callers.start(t.Context(), who, 1)
		}
		require.EqualError(t, limiter.WaitAtMost(t.Context(), b, 1, 1500*ms-1), "limiter: no tokens left (limit 6), retry in 1.5s")
		require.NoError(t, limiter.WaitAtMost(t.Context(), b, 1, 1500*ms))
		callers.requireResults(arrival{"a", 0, nil}, arrival{"b", 500 * ms, nil}, arrival{"c", sec, nil})
		require.Equal(t, 1500*ms, time.Since(callers.began))
	})
}

func TestALeakyBucketRefusesAfterItsLife(t *testing.T) {
	for _, perSecond := range []float64{1, 3} {
		synctest.Test(t, func(t *testing.T) {
			b := limiter.NewLeakyBucket(limiter.LeakyBucketConfig{Rate: limiter.PerSecond(perSecond)})
			time.Sleep(200 * year)
			require.NoError(t, b.Wait(t.Context(), 1), "the first request to an empty bucket")
			require.ErrorIs(t, b.Wait(t.Context(), 1), limiter.ErrLimited)
		})
	}
}

func TestALeakyBucketRefusesATurnThatNeverComes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := limiter.NewLeakyBucket(limiter.LeakyBucketConfig{Rate: limiter.Per(1, year), Capacity: 1000})
		time.Sleep(40 * year)
		require.NoError(t, b.Wait(t.Context(), 40))
		ctx, leave := context.WithCancel(t.Context())
		callers := newCallers(t, b)
		callers.start(ctx, "w", 300)
		require.EqualError(t, b.Wait(t.Context(), 1), "limiter: no tokens left (limit 1000)")
		leave()
		callers.all.Wait()
	})
}

func TestPacersCountWaiters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := guava.NewSmoothBursty(guava.SmoothBurstyConfig{Rate: limiter.PerSecond(1)})
		callers := newCallers(t, s)
		for _, who := range []string{"a", "b", "c"} {
			callers.start(t.Context(), who, 1)
		}
		err := limiter.WaitAtMost(t.Context(), s, 1, 3*sec-1)
		require.EqualError(t, err, "limiter: no tokens left, retry in 3s")
		require.NoError(t, limiter.WaitAtMost(t.Context(), s, 1, 3*sec))
		require.Equal(t, 3*sec, time.Since(callers.began))
	})
}
