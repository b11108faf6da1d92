package inflight_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/inflight"
	"github.com/weir-go/weir/stat"
)

// useAll calls every method of the limiter. c is its config.
func useAll(ctx context.Context, l *inflight.Limiter, c inflight.Config) {
	_ = l.Reconfigure(c)
	_ = l.SetLimit(c.Limit)
	gone, cancel := context.WithCancel(ctx)
	cancel()
	_, _ = l.Acquire(gone)
	_, _ = l.Acquire(inflight.WithCaller(gone, inflight.Caller{Tenant: "inner"}))
	_ = l.Run(gone, func(context.Context) error { return nil })
	if slot, ok := tryAcquire(l); ok {
		slot.Done(ctx, nil)
	}
	if slot, err := l.TryAcquire(inflight.WithCaller(context.Background(), inflight.Caller{Tenant: "inner"})); err == nil {
		slot.Done(ctx, nil)
	}
	_, _, _, _, _ = l.InFlight(), l.Limit(), l.Queue(), l.Name(), l.Stats()
	l.Observe(func(*stat.Series, float64) bool { return true })
	l.Histograms(func(*stat.Series, stat.Histogram) bool { return true })
}

// A lock that is held during a callback would block it for ever.
func TestCallbacksMayUseTheLimiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l *inflight.Limiter
		var inside atomic.Bool
		var calls atomic.Int64
		c := inflight.Config{Limit: 1, MaxWaiters: 2, Name: "l"}
		use := func() {
			calls.Add(1)
			if !inside.Swap(true) {
				useAll(t.Context(), l, c)
				inside.Store(false)
			}
		}
		c.Queue.TenantWeight = func(string) float64 {
			use()
			return 1
		}
		l = inflight.New(c)
		slot, ok := tryAcquire(l)
		require.True(t, ok)
		var all sync.WaitGroup
		for _, tenant := range []string{"a", "b", "a", "c"} { // the queue has room for two
			all.Go(func() {
				if slot, err := l.Acquire(inflight.WithCaller(t.Context(), inflight.Caller{Tenant: tenant})); err == nil {
					slot.Done(t.Context(), nil)
				}
			})
			synctest.Wait()
		}
		_, err := l.TryAcquire(inflight.WithCaller(t.Context(), inflight.Caller{Tenant: "d"}))
		require.ErrorIs(t, err, inflight.ErrFull)
		require.NoError(t, l.Reconfigure(c))
		weighed := calls.Load()
		require.GreaterOrEqual(t, weighed, int64(7))
		slot.Done(t.Context(), nil)
		all.Wait()
		l.Observe(func(*stat.Series, float64) bool { use(); return true })
		l.Histograms(func(*stat.Series, stat.Histogram) bool { use(); return true })
		require.NoError(t, l.Run(t.Context(), func(context.Context) error { use(); return nil }))
		require.Greater(t, calls.Load(), weighed+2)
		require.Zero(t, l.InFlight())
	})
}

func TestASlowTenantWeightDelaysNoOtherCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := inflight.New(inflight.Config{Limit: 1, Queue: inflight.Queue{TenantWeight: func(tenant string) float64 {
			if tenant == "slow" {
				time.Sleep(time.Hour)
			}
			return 1
		}}})
		held, _ := tryAcquire(l)
		var all sync.WaitGroup
		acquire := func(tenant string) {
			all.Go(func() {
				slot, err := l.Acquire(inflight.WithCaller(t.Context(), inflight.Caller{Tenant: tenant}))
				require.NoError(t, err)
				slot.Done(t.Context(), nil)
			})
			synctest.Wait()
		}
		began := time.Now()
		acquire("slow")
		acquire("quick")
		_, err := l.TryAcquire(inflight.WithCaller(t.Context(), inflight.Caller{Tenant: "quick"}))
		require.ErrorIs(t, err, inflight.ErrFull)
		require.NoError(t, l.SetLimit(2))
		held.Done(t.Context(), nil)
		synctest.Wait()
		require.Zero(t, l.InFlight())
		require.Equal(t, began, time.Now())
		all.Wait()
	})
}
