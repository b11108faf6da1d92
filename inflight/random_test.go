package inflight_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/inflight"
)

// caller is a goroutine that acquires a slot, with the result that the oracle expects.
type caller struct {
	cancel context.CancelFunc
	slot   inflight.Slot
	got    chan error // receives the result of Acquire
	done   bool       // the result was received
}

// slotOracle is the oracle of a limiter: the callers with a slot, and those that wait, in order of
// arrival.
type slotOracle struct {
	limit          int
	flying, queued []*caller
}

func (b *slotOracle) serveNext() {
	for len(b.queued) > 0 && len(b.flying) < b.limit {
		b.flying = append(b.flying, b.queued[0])
		b.queued = b.queued[1:]
	}
}

// After each of many random steps, the callers with a slot are exactly those of the oracle. So no
// wakeup is lost, no caller overtakes a waiter, and a caller that leaves takes nothing.
func TestRandomStepsAgainstAnOracle(t *testing.T) {
	for seed := range uint64(60) {
		synctest.Test(t, func(t *testing.T) { compareWithOracle(t, rand.New(rand.NewPCG(seed, 1))) })
	}
}

func compareWithOracle(t *testing.T, r *rand.Rand) {
	o := &slotOracle{limit: 2}
	l := inflight.New(inflight.Config{Limit: o.limit})
	for range 150 {
		randomStep(t, r, l, o)
		synctest.Wait()
		require.Equal(t, len(o.flying), l.InFlight())
		for _, c := range o.flying {
			if !c.done {
				c.done = true
				select {
				case err := <-c.got:
					require.NoError(t, err)
				default:
					require.Fail(t, "a caller has no slot")
				}
			}
		}
		for _, c := range o.queued {
			require.Empty(t, c.got, "a caller that waits")
		}
	}
	for _, c := range o.queued {
		c.cancel()
		require.ErrorIs(t, <-c.got, context.Canceled)
	}
	for _, c := range o.flying {
		c.slot.Done(t.Context(), nil)
		c.cancel()
	}
	require.Zero(t, l.InFlight())
}

func randomStep(t *testing.T, r *rand.Rand, l *inflight.Limiter, o *slotOracle) {
	switch n := r.IntN(10); {
	case n < 4: // a caller comes
		ctx, cancel := context.WithCancel(t.Context())
		c := &caller{cancel: cancel, got: make(chan error, 1)}
		go func() {
			var err error
			c.slot, err = l.Acquire(ctx)
			c.got <- err
		}()
		o.queued = append(o.queued, c)
	case n < 5:
		slot, ok := tryAcquire(l)
		require.Equal(t, len(o.queued) == 0 && len(o.flying) < o.limit, ok)
		slot.Done(t.Context(), nil)
	case n < 8 && len(o.flying) > 0: // a call ends
		i := r.IntN(len(o.flying))
		c := o.flying[i]
		o.flying = slices.Delete(o.flying, i, i+1)
		c.slot.Done(t.Context(), nil)
		c.slot.Done(t.Context(), nil)
		c.cancel()
	case n < 9 && len(o.queued) > 0: // a waiter leaves
		i := r.IntN(len(o.queued))
		c := o.queued[i]
		o.queued = slices.Delete(o.queued, i, i+1)
		c.cancel()
		require.ErrorIs(t, <-c.got, context.Canceled)
	case n == 9:
		o.limit = 1 + r.IntN(5)
		require.NoError(t, l.SetLimit(o.limit))
	}
	o.serveNext()
}

// A limiter keeps nothing of the callers that have waited or have given up.
func TestWaitersLeaveNothingBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := inflight.New(inflight.Config{Limit: 1, MaxWaiters: 1000, Name: "n"})
		for range 3 {
			held, ok := tryAcquire(l)
			require.True(t, ok)
			ctx, cancel := context.WithCancel(t.Context())
			for range 1000 {
				go func() { _, _ = l.Acquire(ctx) }()
			}
			synctest.Wait()
			require.EqualValues(t, 1000, l.Stats().Waiting)
			_, err := l.Acquire(t.Context())
			require.ErrorIs(t, err, inflight.ErrFull)
			cancel()
			synctest.Wait() // and the bubble ends only if no goroutine is left
			require.Zero(t, l.Stats().Waiting)
			held.Done(ctx, nil)
			require.Zero(t, l.InFlight())
		}
	})
}
