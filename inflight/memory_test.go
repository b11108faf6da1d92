package inflight_test

import (
	"context"
	"runtime"
	"strconv"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/inflight"
	"github.com/weir-go/weir/stat"
)

func heapInUse() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // for what a sync.Pool held
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func newUnusedLimiter(_ *testing.T, c inflight.Config) *inflight.Limiter { return inflight.New(c) }

// newReadLimiter returns a limiter whose metrics were read.
func newReadLimiter(_ *testing.T, c inflight.Config) *inflight.Limiter {
	l := inflight.New(c)
	l.Observe(func(*stat.Series, float64) bool { return true })
	return l
}

// newUsedLimiter returns a limiter for whose slot a caller has waited.
func newUsedLimiter(t *testing.T, c inflight.Config) *inflight.Limiter {
	l := inflight.New(c)
	held, _ := tryAcquire(l)
	got := make(chan struct{})
	go func() {
		slot, _ := l.Acquire(t.Context())
		slot.Done(t.Context(), nil)
		close(got)
	}()
	synctest.Wait()
	held.Done(t.Context(), nil)
	<-got
	require.Zero(t, l.InFlight())
	return l
}

// requireBytes requires the stated number of bytes, within 10 %. A 32-bit machine may need fewer.
func requireBytes(t *testing.T, stated, got int64, name string) {
	t.Helper()
	if strconv.IntSize == 64 {
		require.InEpsilon(t, stated, got, 0.1, name)
	}
	require.LessOrEqual(t, float64(got), 1.1*float64(stated), name)
}

// docs/inflight.md states these numbers of bytes.
func TestALimiterNeedsFewBytes(t *testing.T) {
	for name, c := range map[string]struct {
		config  inflight.Config
		limiter func(*testing.T, inflight.Config) *inflight.Limiter
		bytes   int64
	}{
		"fixed":         {inflight.Config{Limit: 1}, newUnusedLimiter, 270},
		"adaptive":      {inflight.Config{Adaptive: true}, newUnusedLimiter, 270 + 700},
		"waited":        {inflight.Config{Limit: 1}, newUsedLimiter, 270 + 660},
		"named":         {inflight.Config{Limit: 1, Name: "n"}, newUnusedLimiter, 270 + 410},
		"named, waited": {inflight.Config{Limit: 1, Name: "n"}, newUsedLimiter, 270 + 660 + 410 + 2200},
		"named, read":   {inflight.Config{Limit: 1, Name: "n"}, newReadLimiter, 270 + 410 + 1800},
	} {
		synctest.Test(t, func(t *testing.T) {
			const n = 3000 // enough to make allocations of the runtime negligible
			var kept [n]*inflight.Limiter
			before := heapInUse()
			for i := range kept {
				kept[i] = c.limiter(t, c.config)
			}
			each := (heapInUse() - before) / n
			runtime.KeepAlive(&kept)
			requireBytes(t, c.bytes, each, name)
		})
	}
}

// measureWaiters makes n callers wait. It returns the bytes per caller without its goroutine, and
// the number of goroutines per caller.
func measureWaiters(t *testing.T, n int, c inflight.Config, caller func(i int) inflight.Caller) (bytes int64, goroutines int) {
	l := inflight.New(c)
	held := make([]inflight.Slot, c.Limit)
	for i := range held {
		held[i], _ = tryAcquire(l)
	}
	ctx, cancel := context.WithCancel(t.Context())
	begin := make(chan struct{})
	for i := range n {
		ctx := inflight.WithCaller(ctx, caller(i))
		go func() {
			<-begin
			_, _ = l.Acquire(ctx)
		}()
	}
	synctest.Wait()
	before, goroutinesBefore := heapInUse(), runtime.NumGoroutine()
	close(begin)
	synctest.Wait()
	bytes, goroutines = (heapInUse()-before)/int64(n), runtime.NumGoroutine()-goroutinesBefore
	cancel()
	synctest.Wait()
	return bytes, goroutines
}

func TestAWaiterNeedsFewBytesAndNoGoroutine(t *testing.T) {
	for name, c := range map[string]struct {
		config inflight.Config
		caller func(i int) inflight.Caller
		bytes  int64
	}{
		"plain":         {inflight.Config{Limit: 1}, func(int) (c inflight.Caller) { return }, 320},
		"with a Target": {inflight.Config{Limit: 1, Queue: inflight.Queue{Target: ms}}, func(int) (c inflight.Caller) { return }, 320 + 370},
		"tenants":       {inflight.Config{Limit: 1}, func(i int) inflight.Caller { return inflight.Caller{Tenant: strconv.Itoa(i)} }, 320 + 160},
	} {
		synctest.Test(t, func(t *testing.T) {
			bytes, goroutines := measureWaiters(t, 2000, c.config, c.caller)
			requireBytes(t, c.bytes, bytes, name)
			require.Zero(t, goroutines)
		})
	}
}
