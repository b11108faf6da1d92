package fleet_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/fleet"
	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/stat"
)

// requireWaiters waits until the limiter has the given number of waiters.
func requireWaiters(t *testing.T, l stat.Source, waiting float64) {
	t.Helper()
	require.Eventually(t, func() bool {
		return metricsOf(l)["weir.limiter.waiting"] == waiting
	}, longTimeout, time.Millisecond)
}

// metricsOf returns the values of a source, by instrument and last attribute if there are two.
func metricsOf(s stat.Source) map[string]float64 {
	metrics := map[string]float64{}
	for s, value := range s.Observe {
		name := s.Instrument.Name
		if len(s.Values) > 1 {
			name += " " + s.Values[len(s.Values)-1]
		}
		metrics[name] = value
	}
	return metrics
}

func TestWaitersOfAKeyAreServedInOrder(t *testing.T) {
	b := newLimiter(connect(t), "order", fleet.TokenBucket{Rate: limiter.Per(1, time.Hour), Burst: 5}, errorOnOutage)
	_, err := b.Take(t.Context(), "user", 5)
	require.NoError(t, err)
	served := make(chan int)
	for i, n := range []int{5, 4, 3, 5, 3} { // no caller leaves enough tokens for the next
		go func() {
			if err := b.Wait(t.Context(), "user", n); err == nil {
				served <- i
			}
		}()
		requireWaiters(t, b, float64(i+1))
	}
	for i := range 5 {
		require.NoError(t, b.Reset(t.Context(), "user"))
		require.Equal(t, i, <-served)
	}
}

func TestEachKeyHasItsOwnWaitQueue(t *testing.T) {
	b := newLimiter(connect(t), "lines", fleet.TokenBucket{Rate: limiter.Per(1, time.Hour), Burst: 1}, errorOnOutage)
	ctx, cancel := context.WithCancel(t.Context())
	_, err := b.Take(t.Context(), "slow", 1)
	require.NoError(t, err)
	done := make(chan error)
	go func() { done <- b.Wait(ctx, "slow", 1) }()
	requireWaiters(t, b, 1)
	require.NoError(t, b.Wait(t.Context(), "quick", 1))
	cancel()
	require.ErrorIs(t, <-done, context.Canceled)
	require.InDelta(t, 0, metricsOf(b)["weir.limiter.waiting"], 0)
}

// waitWithin waits with a deadline.
func waitWithin(t *testing.T, l *fleet.Limiter, d time.Duration, key string, n int) error {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	return l.Wait(ctx, key, n)
}

func TestPointlessWaitEndsAtOnce(t *testing.T) {
	l := connect(t)
	b := newLimiter(l, "hopeless", fleet.TokenBucket{Rate: limiter.Per(1, time.Hour), Burst: 2}, fleet.Config{OnOutage: fleet.FailError, MaxWaiters: 1})
	_, err := b.Take(t.Context(), "user", 2)
	require.NoError(t, err)
	var limited *limiter.LimitedError

	require.ErrorAs(t, b.Wait(t.Context(), "user", 3), &limited)
	require.Equal(t, limiter.OverLimit, limited.Reason)
	require.Equal(t, limiter.Never, limited.RetryAfter())
	require.Equal(t, "hopeless", limited.Name)

	soon, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	err = b.Wait(soon, "user", 1)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorIs(t, err, limiter.ErrLimited)
	require.ErrorIs(t, err, weir.ErrRefused)

	require.ErrorAs(t, err, &limited)
	require.Equal(t, limiter.PastDue, limited.Reason)
	require.Greater(t, limited.RetryAfter(), 59*time.Minute)

	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- b.Wait(ctx, "user", 1) }()
	requireWaiters(t, b, 1)
	err = b.Wait(t.Context(), "user", 1)
	require.ErrorAs(t, err, &limited)
	require.Equal(t, limiter.QueueFull, limited.Reason)
	require.ErrorContains(t, err, ": MaxWaiters is 1")
	require.EqualValues(t, 1, metricsOf(b)["weir.limiter.queue_full"])
	cancel()
	require.ErrorIs(t, <-done, context.Canceled)
	require.Equal(t, context.Canceled, b.Wait(ctx, "user", 1))
}

func TestRefundWakesAWaiter(t *testing.T) {
	b := newLimiter(connect(t), "refund", fleet.TokenBucket{Rate: limiter.Per(1, time.Hour), Burst: 1}, errorOnOutage)
	_, err := b.Take(t.Context(), "user", 1)
	require.NoError(t, err)
	done := make(chan error)
	go func() { done <- b.Wait(t.Context(), "user", 1) }()
	requireWaiters(t, b, 1)
	require.Eventually(t, func() bool { // the waiter may be about to ask, and not yet asleep
		require.NoError(t, b.Refund(t.Context(), time.Now(), "user", 1))
		select {
		case err = <-done:
			return true
		case <-time.After(20 * ms):
			return false
		}
	}, longTimeout, ms)
	require.NoError(t, err)
}

func TestADeadlineInTheQueue(t *testing.T) {
	b := newLimiter(connect(t), "late", fleet.TokenBucket{Rate: limiter.Per(1, time.Hour), Burst: 1}, errorOnOutage)
	_, err := b.Take(t.Context(), "user", 1)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- b.Wait(ctx, "user", 1) }()
	requireWaiters(t, b, 1)
	var limited *limiter.LimitedError
	require.ErrorAs(t, waitWithin(t, b, 20*ms, "user", 1), &limited)
	require.Equal(t, limiter.PastDue, limited.Reason)
	cancel()
	require.ErrorIs(t, <-done, context.Canceled)
}

// Several callers in each of two processes together get what one limiter grants.
func TestProcessesShareALimit(t *testing.T) {
	const perSecond, burst = 300, 10
	var nodes []*fleet.Limiter
	for range 2 {
		nodes = append(nodes, newLimiter(connect(t), "shared", fleet.TokenBucket{Rate: limiter.PerSecond(perSecond), Burst: burst}, errorOnOutage))
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	began := time.Now()
	var all sync.WaitGroup
	got := make([]int, 8)
	for i := range got {
		all.Go(func() {
			for range 20 {
				if nodes[i%2].Wait(ctx, "user", 1) == nil {
					got[i]++
				}
			}
		})
	}
	all.Wait()
	sum := 0
	for _, n := range got {
		sum += n
	}
	require.Equal(t, 8*20, sum, fmt.Sprint(got))
	require.LessOrEqual(t, sum, burst+int(time.Since(began).Seconds()*perSecond)+1, fmt.Sprint(got))
}

func TestWaitWithoutRedis(t *testing.T) {
	_, l := unavailableLink(t)
	require.NoError(t, newBucket(l, fleet.Config{OnOutage: fleet.FailOpen}).Wait(t.Context(), "user", 1))
	require.ErrorIs(t, newBucket(l, errorOnOutage).Wait(t.Context(), "user", 1), fleet.ErrUnavailable)
	f := newFakeServer(t, map[string]string{"evalsha": "-LOADING Redis is loading the dataset in memory\r\n"})
	// so that it asks more than once
	l = connectTo(t, f.client(), fleet.LinkConfig{Timeout: 50 * ms})
	ctx, cancel := context.WithTimeout(t.Context(), 150*ms)
	defer cancel()
	closed := newBucket(l, fleet.Config{OnOutage: fleet.FailClosed})
	err := closed.Wait(ctx, "user", 1)
	require.ErrorIs(t, err, context.DeadlineExceeded)
}
