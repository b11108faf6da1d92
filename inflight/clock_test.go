package inflight_test

import (
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
			held, ok := l.TryAcquire()
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
