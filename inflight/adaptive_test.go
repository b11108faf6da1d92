package inflight_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/inflight"
	"github.com/weir-go/weir/internal/sentinel"
)

// makeHangingCalls makes calls that last until their deadline, one every 10 ms, and returns how
// many were made.
func makeHangingCalls(l *inflight.Limiter, calls int, result func(context.Context) error) (made int) {
	var wg sync.WaitGroup
	for range calls {
		time.Sleep(10 * time.Millisecond)
		slot, ok := tryAcquire(l)
		if !ok {
			continue
		}
		made++
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			<-ctx.Done()
			slot.Done(ctx, result(ctx))
		})
	}
	wg.Wait()
	return made
}

// makeFastCalls makes calls of 20 ms, one after the other.
func makeFastCalls(l *inflight.Limiter, calls int) {
	for range calls {
		if slot, ok := tryAcquire(l); ok {
			time.Sleep(20 * time.Millisecond)
			slot.Done(context.Background(), nil)
		}
	}
}

func TestAdaptiveRefusesCallsToAServiceThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := inflight.New(inflight.Config{Adaptive: true})
		makeFastCalls(l, 100)
		require.Less(t, makeHangingCalls(l, 2000, context.Context.Err), 300)
		require.Equal(t, 1, l.Limit())
		makeFastCalls(l, 200)
		require.Equal(t, 50, l.Limit(), "the service is well, and the limit was not reached for two seconds")
	})
}

func TestAdaptiveLearnsNothingFromIgnoredCalls(t *testing.T) {
	for name, result := range map[string]error{"cancelled": context.Canceled, "refused": sentinel.ErrRefused} {
		length := map[string]time.Duration{"cancelled": 100 * ms, "refused": time.Second}[name]
		synctest.Test(t, func(t *testing.T) {
			l := inflight.New(inflight.Config{Adaptive: true})
			makeFastCalls(l, 100)
			for range 1000 {
				slot, ok := tryAcquire(l)
				require.True(t, ok, name)
				ctx, cancel := context.WithCancel(t.Context())
				time.Sleep(length)
				if name == "cancelled" {
					cancel()
				}
				slot.Done(ctx, result)
				cancel()
			}
			require.Equal(t, 50, l.Limit(), name)
		})
	}
}

func TestAdaptiveNeverExceedsLimit(t *testing.T) {
	l := inflight.New(inflight.Config{Adaptive: true, Limit: 3})
	for range 3 {
		_, ok := tryAcquire(l)
		require.True(t, ok)
	}
	_, ok := tryAcquire(l)
	require.False(t, ok)
	require.Equal(t, 3, l.Limit())
	require.EqualError(t, inflight.Config{Adaptive: true, Limit: -1}.Validate(), "inflight: Limit is -1, must be between 1 and 1000000")
}

// SetLimit bounds a limit that adapts, whether that limit bounds the calls at the time or not.
func TestSetLimitOfAnAdaptiveLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := inflight.New(inflight.Config{Adaptive: true, Limit: 3})
		for range 3 {
			_, ok := tryAcquire(l)
			require.True(t, ok)
		}
		var served atomic.Int64
		for range 200 {
			go func() {
				if _, err := l.Acquire(t.Context()); err == nil {
					served.Add(1)
				}
			}()
		}
		synctest.Wait()
		require.Zero(t, served.Load())
		require.NoError(t, l.SetLimit(103))
		synctest.Wait()
		require.EqualValues(t, 100, served.Load(), "SetLimit serves the waiters")
		require.EqualError(t, l.SetLimit(-1), "inflight: Limit is -1, must be between 1 and 1000000")
		require.Equal(t, 103, l.Limit())
		require.NoError(t, l.SetLimit(0))
		synctest.Wait()
		require.EqualValues(t, 200, served.Load(), "0 stands for the default")

		l = inflight.New(inflight.Config{Adaptive: true})
		makeFastCalls(l, 100)
		require.NoError(t, l.SetLimit(2))
		require.Equal(t, 2, l.Limit())
		require.NoError(t, l.SetLimit(40))
		makeHangingCalls(l, 2000, context.Context.Err)
		require.Equal(t, 1, l.Limit())
		require.NoError(t, l.SetLimit(30))
		require.Equal(t, 1, l.Limit(), "the service hangs")
		makeFastCalls(l, 200)
		require.Equal(t, 30, l.Limit())
	})
}

// A lower upper bound also lowers an adaptive limit while it bounds calls.
func TestSetLimitLowersALimitThatBoundsCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := inflight.New(inflight.Config{Adaptive: true})
		makeFastCalls(l, 100)
		var wg sync.WaitGroup
		defer wg.Wait()
		for range 1000 { // 1,000 calls per second, which take a hundred times as long as usual
			wg.Go(func() {
				if slot, ok := tryAcquire(l); ok {
					time.Sleep(2 * time.Second)
					slot.Done(t.Context(), nil)
				}
			})
			time.Sleep(time.Millisecond)
		}
		bound := l.Limit()
		_, ok := tryAcquire(l)
		require.False(t, ok, "calls are bounded at %d", bound)
		require.Greater(t, bound, 10)
		require.NoError(t, l.SetLimit(10))
		require.Equal(t, 10, l.Limit())
	})
}

func TestAdaptiveServesWaiters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := inflight.New(inflight.Config{Adaptive: true})
		makeFastCalls(l, 100)
		makeHangingCalls(l, 2000, context.Context.Err)
		require.Equal(t, 1, l.Limit())
		var served atomic.Int64
		for range 200 {
			go func() {
				if l.Run(t.Context(), func(context.Context) error {
					time.Sleep(20 * time.Millisecond)
					return nil
				}) == nil {
					served.Add(1)
				}
			}()
		}
		time.Sleep(time.Second)
		synctest.Wait()
		require.EqualValues(t, 200, served.Load(), "one after the other they would take 4 s")
		require.Zero(t, l.InFlight())
	})
}

func TestAdaptiveStorm(t *testing.T) {
	const most = 40
	l := inflight.New(inflight.Config{Adaptive: true, Limit: most, MaxWaiters: 20})
	var inFlight, highest atomic.Int64
	var outside atomic.Bool // of 1 to most
	var wg sync.WaitGroup
	for seed := range uint64(16) {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(seed, 3))
			for range 2000 {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(r.IntN(1000))*time.Microsecond)
				_ = l.Run(ctx, func(context.Context) error {
					n := inFlight.Add(1)
					for h := highest.Load(); n > h && !highest.CompareAndSwap(h, n); h = highest.Load() {
					}
					if r.IntN(100) == 0 {
						<-ctx.Done()
					}
					inFlight.Add(-1)
					return []error{nil, nil, errors.New("any"), ctx.Err()}[r.IntN(4)]
				})
				cancel()
				if l.Limit() < 1 || l.Limit() > most {
					outside.Store(true)
				}
			}
		})
	}
	wg.Wait()
	require.LessOrEqual(t, highest.Load(), int64(most))
	require.False(t, outside.Load())
	require.Zero(t, l.InFlight())
}

func TestAdaptiveAllocatesNothing(t *testing.T) {
	l := inflight.New(inflight.Config{Adaptive: true})
	require.Zero(t, testing.AllocsPerRun(1000, func() {
		slot, _ := tryAcquire(l)
		slot.Done(t.Context(), nil)
	}))
}

func BenchmarkAdaptive(b *testing.B) {
	for name, c := range map[string]inflight.Config{"fixed": {Limit: 1000}, "adaptive": {Adaptive: true}} {
		l := inflight.New(c)
		call := func() {
			slot, _ := tryAcquire(l)
			slot.Done(b.Context(), nil)
		}
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				call()
			}
		})
		b.Run(name+"/parallel", func(b *testing.B) {
			b.RunParallel(func(p *testing.PB) {
				for p.Next() {
					call()
				}
			})
		})
	}
}
