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
)

// waitWithoutSlot returns how long a caller waits that gets no slot, and when one is expected then.
func waitWithoutSlot(t *testing.T, l *inflight.Limiter) (waited, until time.Duration) {
	began := time.Now()
	_, err := l.Acquire(t.Context())
	var full *inflight.FullError
	require.ErrorAs(t, err, &full)
	return time.Since(began), time.Until(full.Until)
}

// A limiter is made with the real clock, and used in bubbles, each of which begins in the year
// 2000.
func TestAClockThatGoesBackEndsAnOverload(t *testing.T) {
	l := inflight.New(inflight.Config{Limit: 1, Queue: inflight.Queue{Target: 5 * ms}})
	for range 3 {
		synctest.Test(t, func(t *testing.T) {
			held, ok := tryAcquire(l)
			require.True(t, ok)
			waited, until := waitWithoutSlot(t, l)
			require.Equal(t, 100*ms, waited, "the Interval, because the queue is not overloaded")
			require.LessOrEqual(t, until, time.Second)
			held.Done(t.Context(), nil)
			time.Sleep(time.Hour)

			var all sync.WaitGroup
			var keep atomic.Bool
			for range 300 { // an overload
				all.Go(func() {
					if slot, err := l.Acquire(t.Context()); err == nil {
						time.Sleep(20 * ms)
						for keep.Load() {
							time.Sleep(ms)
						}
						slot.Done(t.Context(), nil)
					}
				})
				time.Sleep(ms)
			}
			time.Sleep(ms / 2) // no call ends at this moment
			keep.Store(true)
			waited, until = waitWithoutSlot(t, l)
			require.Equal(t, 5*ms, waited, "the Target, because the queue is overloaded")
			require.LessOrEqual(t, until, time.Second)
			keep.Store(false)
			all.Wait()
		})
		slot, err := l.Acquire(t.Context())
		require.NoError(t, err)
		slot.Done(t.Context(), nil)
	}
}

// An adaptive limiter in a package variable is made with the real clock, and used in one bubble
// after the other.
func TestAnAdaptiveLimitStartsAgainWithEachClock(t *testing.T) {
	l := inflight.New(inflight.Config{Adaptive: true})
	var hung []*inflight.Slot
	for range 3 {
		synctest.Test(t, func(t *testing.T) {
			require.Zero(t, manyCalls(t, l, 200, 1, 20*time.Millisecond, nil), "no call has ended in this clock")
			_ = manyCalls(t, l, 200, 50, 20*time.Millisecond, nil)
			require.Zero(t, manyCalls(t, l, 200, 50, 20*time.Millisecond, nil))
			require.Empty(t, l.Explain())
			// the service hangs, and the calls are bounded until the bubble ends
			require.Positive(t, manyCalls(t, l, 20, 500, 5*time.Second, context.DeadlineExceeded))
			for range 1000 {
				if slot, ok := tryAcquire(l); ok {
					hung = append(hung, &slot)
				}
				time.Sleep(10 * time.Millisecond)
			}
			require.NotEmpty(t, l.Explain())
		})
		synctest.Test(t, func(t *testing.T) {
			passed := 0
			for range 50 {
				if slot, ok := tryAcquire(l); ok {
					passed++
					slot.Done(t.Context(), nil)
				}
			}
			require.Positive(t, passed, "though calls of another clock have all slots")
			require.Empty(t, l.Explain())
			time.Sleep(time.Hour)
		})
	}
	for _, slot := range hung {
		slot.Done(t.Context(), nil)
	}
	require.Zero(t, l.InFlight())
}

// A limit that bounds the calls in one clock starts again in the next one, though it is not reached
// there.
func TestABoundEndsWithItsClock(t *testing.T) {
	for name, then := range map[string]func(t *testing.T, l *inflight.Limiter){
		"a call ends": func(t *testing.T, l *inflight.Limiter) {
			require.Zero(t, manyCalls(t, l, 1, 1, 20*time.Millisecond, nil))
			require.Equal(t, 50, l.Limit(), "as that of a new limiter")
		},
		"it is explained": func(t *testing.T, l *inflight.Limiter) { require.Empty(t, l.Explain()) },
	} {
		t.Run(name, func(t *testing.T) {
			l := inflight.New(inflight.Config{Adaptive: true})
			synctest.Test(t, func(t *testing.T) {
				_ = manyCalls(t, l, 5, 100, 20*time.Millisecond, nil)
				require.Positive(t, manyCalls(t, l, 20, 500, 5*time.Second, context.DeadlineExceeded))
				require.NotEmpty(t, l.Explain())
				require.NotEqual(t, 50, l.Limit())
				time.Sleep(5 * time.Second)
			})
			synctest.Test(t, func(t *testing.T) { then(t, l) })
		})
	}
}

// manyCalls makes n calls every 21 ms, a number of times, and returns how many were refused.
func manyCalls(t *testing.T, l *inflight.Limiter, n, times int, took time.Duration, err error) (refused int) {
	t.Helper()
	for range times {
		for range n {
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			slot, ok := tryAcquire(l)
			if !ok {
				refused++
				cancel()
				continue
			}
			go func() {
				defer cancel()
				time.Sleep(took)
				slot.Done(ctx, err)
			}()
		}
		time.Sleep(21 * time.Millisecond)
	}
	return refused
}
