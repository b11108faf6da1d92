package waiting_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/waiting"
)

func newWaiter() *waiting.Waiter {
	w := &waiting.Waiter{}
	w.Init()
	return w
}

// blocks returns how long Block blocks.
func blocks(w *waiting.Waiter, done, changed <-chan struct{}, d time.Duration) time.Duration {
	began := time.Now()
	w.Block(done, changed, d)
	return time.Since(began)
}

func TestBlockEndsWithWhatComesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		w := newWaiter()
		require.Equal(t, time.Second, blocks(w, ctx.Done(), nil, time.Second), "its own time")
		require.Equal(t, 2*time.Second, blocks(w, ctx.Done(), nil, 2*time.Second), "the timer is used again")
		require.Equal(t, 2*time.Second, blocks(w, ctx.Done(), nil, waiting.Forever), "done")

		w = newWaiter()
		time.AfterFunc(time.Second, w.Signal)
		require.Equal(t, time.Second, blocks(w, nil, nil, waiting.Forever), "a signal")
		w.Signal()
		w.Signal()
		require.Zero(t, blocks(w, nil, nil, time.Minute), "an earlier signal")
		changed := make(chan struct{}, 1)
		time.AfterFunc(time.Second, func() { changed <- struct{}{} })
		require.Equal(t, time.Second, blocks(w, nil, changed, time.Hour), "a change")
		time.AfterFunc(time.Second, func() { w.Interrupt(waiting.Opened) })
		require.Equal(t, time.Second, blocks(w, nil, nil, time.Hour), "an interruption")
	})
}

func TestOnlyTheFirstCauseIsKept(t *testing.T) {
	w := newWaiter()
	require.Equal(t, waiting.None, w.Cause())
	w.Interrupt(waiting.Forgotten)
	w.Interrupt(waiting.Opened)
	require.Equal(t, waiting.Forgotten, w.Cause())
	w.Clear()
	require.Equal(t, waiting.None, w.Cause())
	w.Interrupt(waiting.Changed)
	require.Equal(t, waiting.Changed, w.Cause())
}

func TestAnInterruptionEndsTheContext(t *testing.T) {
	w := newWaiter()
	ctx, release := w.Context(t.Context())
	require.NoError(t, ctx.Err())
	w.Interrupt(waiting.Changed)
	require.ErrorIs(t, ctx.Err(), context.Canceled)
	release()

	ctx, release = w.Context(t.Context())
	require.Error(t, ctx.Err(), "it was interrupted before")
	release()
	w.Clear()
	ctx, release = w.Context(t.Context())
	require.NoError(t, ctx.Err())
	release()
	require.Error(t, ctx.Err())
	w.Interrupt(waiting.Opened) // must not call what release has ended
}

// An interruption during the call of Context is not missed.
func TestAnInterruptionIsNeverMissed(t *testing.T) {
	for range 2000 {
		w := newWaiter()
		go w.Interrupt(waiting.Opened)
		ctx, release := w.Context(t.Context())
		<-ctx.Done()
		require.Equal(t, waiting.Opened, w.Block(nil, nil, waiting.Forever))
		release()
	}
}

// A channel has room for one signal, which may be received before the interruption is looked at.
func TestBlockNeverBlocksWhileTheWaitIsInterrupted(t *testing.T) {
	w := newWaiter()
	w.Signal()
	w.Interrupt(waiting.Changed)
	for range 3 {
		require.Equal(t, waiting.Changed, w.Block(nil, nil, waiting.Forever))
	}
	w.Clear()
}
