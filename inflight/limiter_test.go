package inflight_test

import (
	"context"
	"errors"
	"math"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/inflight"
	"github.com/weir-go/weir/internal/sentinel"
)

func TestLimiterBoundsCallsInFlight(t *testing.T) {
	l := inflight.New(inflight.Config{Limit: 2})
	first, err := l.Acquire(t.Context())
	require.NoError(t, err)
	second, ok := tryAcquire(l)
	require.True(t, ok)
	none, ok := tryAcquire(l)
	require.False(t, ok)
	require.Equal(t, 2, l.InFlight())
	none.Done(t.Context(), nil)
	for range 3 {
		first.Done(t.Context(), errors.New("any")) // counts once
	}
	require.Equal(t, 1, l.InFlight())
	second.Done(t.Context(), nil)
	require.Zero(t, l.InFlight())
	require.Equal(t, 2, l.Limit())
}

func TestAcquireServesInOrderOfArrival(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := inflight.New(inflight.Config{Limit: 1, MaxWaiters: 3})
		held, _ := tryAcquire(l)
		began, order := time.Now(), make(chan string, 4)
		call := func(ctx context.Context, who string) {
			go func() {
				slot, err := l.Acquire(ctx)
				if err != nil {
					order <- who + " gives up"
					return
				}
				order <- who
				time.Sleep(time.Second)
				slot.Done(ctx, nil)
			}()
			synctest.Wait()
		}
		ctx, leave := context.WithCancel(t.Context())
		call(t.Context(), "a")
		call(ctx, "b")
		call(t.Context(), "c")
		_, err := l.Acquire(t.Context())
		require.ErrorIs(t, err, inflight.ErrFull, "three callers wait")
		leave()
		require.Equal(t, "b gives up", <-order)
		held.Done(t.Context(), nil)
		_, ok := tryAcquire(l)
		require.False(t, ok, "no caller overtakes the waiters")
		synctest.Wait()
		require.Equal(t, []string{"a", "c"}, []string{<-order, <-order})
		require.Equal(t, time.Second, time.Since(began))
		time.Sleep(time.Second)
		synctest.Wait()
		require.Zero(t, l.InFlight())
	})
}

func TestAcquireGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := inflight.New(inflight.Config{Limit: 1})
		cancelled, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := l.Acquire(cancelled)
		require.Equal(t, context.Canceled, err)
		require.Zero(t, l.InFlight())
		slot, err := l.Acquire(t.Context())
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = l.Acquire(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, err, inflight.ErrFull)
		require.ErrorIs(t, err, sentinel.ErrRefused)
		slot.Done(t.Context(), nil)
		_, ok := tryAcquire(l)
		require.True(t, ok, "the waiter that gave up keeps no caller waiting")
	})
}

func TestSetLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := inflight.New(inflight.Config{Limit: 1})
		first, _ := tryAcquire(l)
		var flying atomic.Int64
		for range 3 {
			go func() {
				slot, _ := l.Acquire(t.Context())
				flying.Add(1)
				time.Sleep(time.Second)
				slot.Done(t.Context(), nil)
			}()
		}
		synctest.Wait()
		require.NoError(t, l.SetLimit(3))
		synctest.Wait()
		require.EqualValues(t, 2, flying.Load())
		require.EqualError(t, l.SetLimit(0), "inflight: Limit is 0, must be between 1 and 1000000")
		require.NoError(t, l.SetLimit(1))
		first.Done(t.Context(), nil)
		synctest.Wait()
		require.EqualValues(t, 2, flying.Load(), "calls beyond the lower limit continue, and others wait")
		require.Equal(t, 1, l.Limit())
		time.Sleep(3*time.Second + 1)
		require.Zero(t, l.InFlight())
	})
}

func TestRunReleasesItsSlotHoweverTheCallEnds(t *testing.T) {
	l := inflight.New(inflight.Config{Limit: 1})
	boom := errors.New("boom")
	for name, call := range map[string]func(){
		"success": func() { require.NoError(t, l.Run(t.Context(), func(context.Context) error { return nil })) },
		"error":   func() { require.Equal(t, boom, l.Run(t.Context(), func(context.Context) error { return boom })) },
		"panic": func() {
			require.PanicsWithValue(t, 7, func() { _ = l.Run(t.Context(), func(context.Context) error { panic(7) }) })
		},
		"Goexit": func() {
			done := make(chan struct{})
			go func() {
				defer close(done)
				_ = l.Run(t.Context(), func(context.Context) error { runtime.Goexit(); return nil })
			}()
			<-done
		},
		"no function": func() {
			require.PanicsWithValue(t, "inflight: the function to call is nil", func() { _ = l.Run(t.Context(), nil) })
		},
		"a nested call": func() {
			require.NoError(t, l.Run(t.Context(), func(context.Context) error {
				ctx, cancel := context.WithTimeout(t.Context(), time.Microsecond)
				defer cancel()
				err := l.Run(ctx, func(context.Context) error { t.Error("called without a slot"); return nil })
				require.ErrorIs(t, err, context.DeadlineExceeded)
				return nil
			}))
		},
	} {
		call()
		require.Zero(t, l.InFlight(), name)
	}
}

func TestConfigFaults(t *testing.T) {
	for _, c := range []struct {
		config inflight.Config
		want   string
	}{
		{inflight.Config{}, "inflight: Limit is 0, must be between 1 and 1000000"},
		{inflight.Config{Limit: math.MinInt, MaxWaiters: -2}, "inflight: Limit is " + numberText(math.MinInt) +
			", must be between 1 and 1000000\ninflight: MaxWaiters is -2, must be at least 1 (or 0 for no bound)"},
		{inflight.Config{Limit: 1_000_001}, "inflight: Limit is 1000001, must be between 1 and 1000000"},
		{inflight.Config{Limit: 1, Shadow: true}, "inflight: Shadow is set without a Name, must have both"},
	} {
		require.EqualError(t, c.config.Validate(), c.want)
		require.PanicsWithError(t, c.want, func() { inflight.New(c.config) })
	}
	require.NoError(t, inflight.New(inflight.Config{Limit: 1_000_000}).SetLimit(1))
}

// The limiter is created outside, like a package variable, and used in two synctest bubbles.
func TestWaitInOneBubbleAfterAnother(t *testing.T) {
	l := inflight.New(inflight.Config{Limit: 1})
	for range 2 {
		synctest.Test(t, func(t *testing.T) {
			slot, err := l.Acquire(t.Context())
			require.NoError(t, err)
			time.AfterFunc(time.Second, func() { slot.Done(t.Context(), nil) })
			next, err := l.Acquire(t.Context())
			require.NoError(t, err)
			next.Done(t.Context(), nil)
		})
	}
}

func TestASlotIsAcquiredWithoutAllocating(t *testing.T) {
	for name, l := range map[string]*inflight.Limiter{
		"plain": inflight.New(inflight.Config{Limit: 1}),
		"named": inflight.New(inflight.Config{Limit: 1, Name: "n"}),
	} {
		ctx := t.Context()
		require.Zero(t, testing.AllocsPerRun(100, func() {
			slot, _ := l.Acquire(ctx)
			_, _ = tryAcquire(l)
			slot.Done(ctx, nil)
		}), name)
		require.Zero(t, testing.AllocsPerRun(100, func() { _ = l.Run(ctx, func(context.Context) error { return nil }) }), name)
		require.Zero(t, testing.AllocsPerRun(100, func() {
			for range l.Observe {
			}
		}), name)
	}
}

func tryAcquire(l *inflight.Limiter) (slot inflight.Slot, ok bool) {
	slot, err := l.TryAcquire(context.Background())
	ok = err == nil
	return
}

func TestACallWhoseContextIsDoneGetsNoSlot(t *testing.T) {
	l := inflight.New(inflight.Config{Limit: 1})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := l.Acquire(ctx)
	require.Equal(t, context.Canceled, err)
	_, err = l.TryAcquire(ctx)
	require.Equal(t, context.Canceled, err)
	require.Zero(t, l.InFlight())
}
