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

const us = time.Microsecond

func TestPacersWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := guava.NewSmoothBursty(guava.SmoothBurstyConfig{Rate: limiter.PerSecond(4)})
		waits := []time.Duration{}
		for _, n := range []int{10, 1, 1} {
			began := time.Now()
			require.NoError(t, s.Wait(t.Context(), n))
			waits = append(waits, time.Since(began))
		}
		require.Equal(t, []time.Duration{0, 2500 * ms, 250 * ms}, waits)
		err := limiter.WaitAtMost(t.Context(), s, 1, 249*ms)
		require.ErrorIs(t, err, limiter.ErrLimited)
		err = s.Wait(t.Context(), 0)
		require.EqualError(t, err, "limiter: more than the limit")

		ctx, cancel := context.WithTimeout(t.Context(), 100*ms)
		defer cancel()
		err = s.Wait(ctx, 1)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		began := time.Now()
		require.NoError(t, s.Wait(t.Context(), 1), "a refused caller owes nothing")
		require.Equal(t, 250*ms, time.Since(began))
	})
}

func TestPacersServeInOrderAndChargeNoWaiterThatLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := guava.NewSmoothWarmingUp(guava.SmoothWarmingUpConfig{Rate: limiter.PerSecond(2), WarmUp: 4 * sec, MaxWaiters: 3})
		l := newCallers(t, w)
		ctx, leave := context.WithCancel(t.Context())
		l.start(t.Context(), "first", 1)
		l.start(t.Context(), "second", 1)
		l.start(ctx, "leaves", 100)
		l.start(t.Context(), "third", 1)
		err := w.Wait(t.Context(), 1)
		requireQueueFull(t, err)
		leave()
		l.requireResults(arrival{"first", 0, nil}, arrival{"leaves", 0, context.Canceled}, arrival{"second", 1375 * ms, nil}, arrival{"third", 2500 * ms, nil})
	})
}

func TestPacersApplyANewRateToWaiters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := guava.NewSmoothBursty(guava.SmoothBurstyConfig{Rate: limiter.PerSecond(1)})
		l := newCallers(t, s)
		for _, who := range []string{"a", "b", "c", "d"} {
			l.start(t.Context(), who, 1)
		}
		require.NoError(t, s.SetRate(limiter.PerSecond(10)))
		require.Error(t, s.SetRate(limiter.PerSecond(-1)))
		require.Error(t, s.SetRate(limiter.Unlimited()))
		l.requireResults(arrival{"a", 0, nil}, arrival{"b", sec, nil}, arrival{"c", 1100 * ms, nil}, arrival{"d", 1200 * ms, nil})
	})
}

func TestLeakyBucketConfigNamesInvalidFields(t *testing.T) {
	require.PanicsWithError(t, "limiter: Rate is -1/s, must be above 0\nlimiter: Capacity is -1, must be at least 1 (or 0 for the default)",
		func() { limiter.NewLeakyBucket(limiter.LeakyBucketConfig{Rate: limiter.PerSecond(-1), Capacity: -1}) })
}

func TestLeakyBucketQueuesAndOverflows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := limiter.NewLeakyBucket(limiter.LeakyBucketConfig{Rate: limiter.PerSecond(2), Capacity: 6})
		l := newCallers(t, b)
		for _, who := range []string{"a", "b", "c", "d", "e", "f", "g"} {
			// scenario 44: of seven at once, the last waits 3 s
			l.start(t.Context(), who, 1)
		}
		requireQueueFull(t, b.Wait(t.Context(), 1))
		require.ErrorIs(t, limiter.WaitAtMost(t.Context(), b, 1, sec), limiter.ErrLimited)
		require.EqualError(t, b.Wait(t.Context(), 7), "limiter: more than the limit (limit 6)")
		l.requireResults(arrival{"a", 0, nil}, arrival{"b", 500 * ms, nil}, arrival{"c", 1000 * ms, nil}, arrival{"d", 1500 * ms, nil},
			arrival{"e", 2000 * ms, nil}, arrival{"f", 2500 * ms, nil}, arrival{"g", 3000 * ms, nil})
		time.Sleep(hour)
		l = newCallers(t, b) // idle time adds no burst
		l.start(t.Context(), "big", 3)
		l.start(t.Context(), "after it", 1)
		l.requireResults(arrival{"big", 0, nil}, arrival{"after it", 1500 * ms, nil})
	})
}

func TestLeakyBucketKeepsItsRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := limiter.NewLeakyBucket(limiter.LeakyBucketConfig{Rate: limiter.PerSecond(3)})
		began := time.Now()
		for range 3*1000 + 1 {
			require.NoError(t, b.Wait(t.Context(), 1))
		}
		require.Equal(t, 1000*sec, time.Since(began))
		deadline, cancel := context.WithTimeout(t.Context(), 300*ms)
		defer cancel()
		require.ErrorIs(t, b.Wait(deadline, 1), context.DeadlineExceeded)
	})
}

// Scenario 43: a small burst or none, but never an unlimited one.
func TestTokenBucketAsAPacer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerSecond(1), Burst: 2})
		l := newCallers(t, b)
		l.start(t.Context(), "a", 1)
		time.Sleep(2 * sec)
		for _, who := range []string{"b", "c", "d", "e"} {
			l.start(t.Context(), who, 1)
		}
		l.requireResults(arrival{"a", 0, nil}, arrival{"b", 2 * sec, nil}, arrival{"c", 2 * sec, nil}, arrival{"d", 3 * sec, nil}, arrival{"e", 4 * sec, nil})
	})
	b, allowed := newBucket(limiter.PerMinute(7), 1), []int{0, 0, 0}
	for at := time.Duration(0); at <= 120*sec; {
		r := b.TakeAt(start.Add(at), 1)
		for i, until := range []time.Duration{sec, 60 * sec, 120 * sec} {
			if r.OK && at <= until {
				allowed[i]++
			}
		}
		at += r.RetryAfter
	}
	require.Equal(t, []int{1, 8, 15}, allowed)

	c := newBucket(limiter.PerSecond(2), 1) // scenario 44, the smooth one
	for i := range 7 {
		reserve(t, c, 0, 1, time.Duration(i)*500*ms)
	}
	reserve(t, c, 800*ms, 1, 3500*ms)
	reserve(t, c, 800*ms, 1, 4000*ms)
	reserve(t, c, 800*ms, 1, 800*ms+3700*ms)
}
