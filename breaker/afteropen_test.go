package breaker_test

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"weak"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/breaker"
)

func TestAfterOpenIsCalledOnce(t *testing.T) {
	b := breaker.New("b", breaker.Config{MinCalls: 1, Cooldown: breaker.Off, Probes: 1})
	calls := 0
	stop := b.AfterOpen(func() {
		calls++
		require.True(t, b.Tripped(), "the state has changed")
	})
	stopped := b.AfterOpen(func() { t.Error("called though it was stopped") })
	require.True(t, stopped())
	require.False(t, stopped())
	run(t, b, 1, succeed)
	require.Zero(t, calls)
	run(t, b, 1, fail)
	require.Equal(t, 1, calls)
	run(t, b, 1, fail) // opens again
	require.Equal(t, 1, calls)
	require.False(t, stop())
}

func TestAfterOpenOfABreakerThatIsOpen(t *testing.T) {
	b := breaker.New("b", breaker.Config{})
	b.Force(breaker.ForcedOpen, "")
	calls := 0
	stop := b.AfterOpen(func() { calls++ })
	require.Equal(t, 1, calls)
	require.False(t, stop())
}

func TestAfterOpenMissesNoOpening(t *testing.T) {
	for range 500 {
		b := breaker.New("b", breaker.Config{MinCalls: 1, Cooldown: time.Hour})
		var called atomic.Int64
		var wg sync.WaitGroup
		wg.Go(func() { _ = b.Run(bg(), fail) })
		for range 3 {
			wg.Go(func() { b.AfterOpen(func() { called.Add(1) }) })
		}
		wg.Wait()
		require.Equal(t, int64(3), called.Load())
	}
}

func TestAfterOpenNeedsAFunction(t *testing.T) {
	b := breaker.New("b", breaker.Config{})
	b.OpenFor(time.Hour)
	require.True(t, b.Tripped())
}

func TestAfterOpenKeepsNoFunctionThatWasStopped(t *testing.T) {
	b := breaker.New("b", breaker.Config{})
	waiters := make([]weak.Pointer[[64]byte], 100)
	for i := range waiters {
		waiter := new([64]byte)
		stop := b.AfterOpen(func() { waiter[0]++ })
		require.True(t, stop())
		waiters[i] = weak.Make(waiter)
	}
	runtime.GC()
	for _, w := range waiters {
		require.Nil(t, w.Value(), "what a stopped function refers to is free")
	}
	runtime.KeepAlive(b)
}
