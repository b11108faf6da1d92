package guava_test

import (
	"context"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/limiter/guava"
)

func pacers() map[string]*guava.RateLimiter {
	return map[string]*guava.RateLimiter{
		"bursty":     guava.NewSmoothBurstyAt(guava.SmoothBurstyConfig{Rate: limiter.PerSecond(2)}, start),
		"warming up": guava.NewSmoothWarmingUpAt(guava.SmoothWarmingUpConfig{Rate: limiter.PerSecond(2), WarmUp: us, ColdFactor: 1}, start),
	}
}

func TestTakeIsAllowedWithoutDebt(t *testing.T) {
	for name, l := range pacers() {
		r := l.TakeAt(start, 0)
		require.Equal(t, limiter.Result{OK: true, Limit: math.MaxInt, Remaining: math.MaxInt}, r, name)
		r = l.TakeAt(start, 5)
		require.True(t, r.OK, name)
		require.Zero(t, r.Remaining, name)
		owed := r.ResetAfter
		require.InDelta(t, 2500*ms, owed, float64(ms), name)
		r = l.TakeAt(start.Add(sec), 1)
		require.Equal(t, limiter.Result{Limit: math.MaxInt, RetryAfter: owed - sec, ResetAfter: owed - sec}, r, name)
		require.Equal(t, limiter.Never, l.TakeAt(start.Add(year), -1).RetryAfter, name)
		require.False(t, l.TakeAt(start.Add(owed-1), 1).OK, name)
		require.True(t, l.TakeAt(start.Add(owed), 1).OK, name)
	}
}

func TestARefundUndoesTheLastRequest(t *testing.T) {
	for name, l := range pacers() {
		require.True(t, l.TakeAt(start, 5).OK, name)
		l.Refund(start, 5)
		require.True(t, l.TakeAt(start, 1).OK, name)
		l.Refund(start, 0)
		l.Refund(start, -1)
		require.False(t, l.TakeAt(start, 1).OK, name)
		l.Refund(start, 1)
		l.Refund(start, 1) // the debt is paid
		r := l.TakeAt(start, 1)
		require.True(t, r.OK, name)
		require.Positive(t, r.ResetAfter, "%s: a refund adds no permits", name)
	}
}

func TestARefundOfAnEarlierRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := guava.NewSmoothBursty(guava.SmoothBurstyConfig{Rate: limiter.PerSecond(1)})
		_, ok := l.Reserve(3, 0)
		require.True(t, ok)
		_, ok = l.Reserve(2, limiter.Never)
		require.True(t, ok)
		l.Refund(time.Now(), 3)
		wait, _ := l.Reserve(1, limiter.Never)
		require.InDelta(t, 2*sec, wait, float64(sec/2), "two permits are still to be paid")
		l.Refund(time.Now(), math.MaxInt)
		require.True(t, l.Take(1).OK)
		require.False(t, l.Take(1).OK)
	})
}

// A pacer in a Joint behaves like other limiters.
func TestPacersInAJoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pace := guava.NewSmoothBursty(guava.SmoothBurstyConfig{Rate: limiter.PerSecond(1)})
		named := limiter.NewJoint("disk", pace)
		both := limiter.NewJoint("", named, limiter.NewSlidingLog(limiter.WindowConfig{Limit: 100, Window: time.Minute}))
		began := time.Now()
		require.True(t, both.Take(3).OK)
		require.False(t, both.Take(1).OK)
		require.NoError(t, both.Wait(t.Context(), 1))
		require.Equal(t, 3*sec, time.Since(began))
		require.NoError(t, named.Wait(t.Context(), 1))
		require.Equal(t, 4*sec, time.Since(began))
		require.EqualValues(t, 1, named.Stats().Waited)
		soon, cancel := context.WithTimeout(t.Context(), sec-1)
		defer cancel()
		require.ErrorIs(t, pace.Wait(soon, 1), limiter.ErrLimited)
		require.Equal(t, 4*sec, time.Since(began), "it is refused at once")
	})
}

func TestTakeIsRefusedWhileACallerWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := guava.NewSmoothBursty(guava.SmoothBurstyConfig{Rate: limiter.PerSecond(1)})
		require.True(t, l.Take(1).OK)
		served := make(chan struct{})
		go func() {
			defer close(served)
			_ = l.Wait(t.Context(), 1)
		}()
		synctest.Wait()
		require.False(t, l.Take(1).OK)
		began := time.Now()
		l.Refund(time.Now(), 1)
		<-served
		require.Zero(t, time.Since(began), "a refund wakes the first waiter")
	})
}
