package inflight_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/inflight"
)

// flightCounter counts calls, and the highest number in flight at the same time.
type flightCounter struct{ now, most, all atomic.Int64 }

// run makes a call with a slot, and releases the slot twice.
func (f *flightCounter) run(ctx context.Context, slot *inflight.Slot) {
	now := f.now.Add(1)
	for m := f.most.Load(); now > m && !f.most.CompareAndSwap(m, now); m = f.most.Load() {
	}
	f.all.Add(1)
	f.now.Add(-1)
	slot.Done(ctx, nil)
	slot.Done(ctx, nil)
}

// Callers acquire slots in all ways and give up at any moment, while the limit changes. No more
// calls than the highest limit are ever in flight, every waiter returns, and no slot is lost.
func TestStorm(t *testing.T) {
	const callers, rounds, highest = 16, 300, 4
	l := inflight.New(inflight.Config{Limit: highest, MaxWaiters: callers, Name: "storm"})
	var calls flightCounter
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			for i := range rounds {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rand.IntN(200))*time.Microsecond)
				switch i % 4 {
				case 0:
					if slot, ok := tryAcquire(l); ok {
						calls.run(ctx, &slot)
					}
				case 1:
					slot, err := l.Acquire(t.Context())
					if err != nil {
						t.Errorf("a wait without an end: %v", err)
					}
					calls.run(ctx, &slot)
				case 2:
					if slot, err := l.Acquire(ctx); err == nil {
						calls.run(ctx, &slot)
					}
				case 3:
					if err := l.SetLimit(1 + rand.IntN(highest)); err != nil {
						t.Error(err)
					}
				}
				cancel()
			}
		})
	}
	all.Wait()
	require.LessOrEqual(t, calls.most.Load(), int64(highest))
	require.Zero(t, l.InFlight())
	stats := l.Stats()
	require.Zero(t, stats.Waiting)
	require.Equal(t, calls.all.Load(), stats.Allowed+stats.Waited)
	require.NoError(t, l.SetLimit(1))
	_, ok := tryAcquire(l)
	require.True(t, ok, "no waiter is left that would keep callers out")
}
