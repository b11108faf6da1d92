package inflight

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// A slot is released after a caller found none and before it joins the queue. No later release
// would wake the caller.
func TestACallerThatJoinsWhenASlotIsFreeGetsIt(t *testing.T) {
	l := New(Config{Limit: 1})
	held, _ := l.TryAcquire(t.Context())
	_, _, ok := l.occupy()
	require.False(t, ok)
	held.Done(t.Context(), nil)
	w, _ := l.join(Caller{})
	require.Equal(t, hasSlot, w.state)
	require.Equal(t, 1, l.InFlight())
	require.False(t, l.state.hasWaiters())
}

// After the last waiter has left, callers get slots at once again.
func TestAWaiterThatLeavesIsNotWaitedFor(t *testing.T) {
	l := New(Config{Limit: 1})
	_, _ = l.TryAcquire(t.Context())
	first, _ := l.join(Caller{})
	last, _ := l.join(Caller{})
	require.Equal(t, stillWaits, l.leave(first))
	require.True(t, l.state.hasWaiters())
	require.Equal(t, stillWaits, l.leave(last))
	require.False(t, l.state.hasWaiters())
	require.Zero(t, l.queue.length.Load())
}

// The slots whose calls were forgotten are free when a waiter gives up.
func TestAWaiterThatLeavesFindsAbandonedSlots(t *testing.T) {
	l := New(Config{Limit: 1})
	_, _ = l.TryAcquire(t.Context())
	first, _ := l.join(Caller{})
	last, _ := l.join(Caller{})
	inside{}.Abandon(l)
	require.Equal(t, hasSlot, l.leave(first), "it got the slot just now")
	require.Equal(t, stillWaits, l.leave(last))
	require.Equal(t, 1, l.InFlight())
}

// Callers leave by themselves, while no slot is released.
func TestAWaitEnds(t *testing.T) {
	const ms = time.Millisecond
	for want, overloaded := range map[time.Duration]bool{5 * ms: true, 100 * ms: false} {
		bound := map[bool]string{true: "Target", false: "Interval"}[overloaded]
		synctest.Test(t, func(t *testing.T) {
			l := New(Config{Limit: 1, Queue: Queue{Target: 5 * ms}})
			_, _ = l.TryAcquire(t.Context())
			l.queue.backlog = &backlog{config: l.Queue(), overloaded: overloaded}
			began := time.Now()
			_, err := l.Acquire(t.Context())
			require.EqualError(t, err, fmt.Sprintf("inflight limiter had no slot within %v (limit 1, %s %v), retry after %v", want, bound, want, want))
			require.Equal(t, want, time.Since(began))
		})
	}
	synctest.Test(t, func(t *testing.T) {
		l := New(Config{Limit: 1})
		_, _ = l.TryAcquire(t.Context())
		ctx, cancel := context.WithTimeout(t.Context(), 24*time.Hour)
		defer cancel()
		_, err := l.Acquire(ctx)
		require.EqualError(t, err, "inflight limiter had no slot before the deadline (limit 1), retry after 1s")
	})
}
