package weir_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/inflight"
	"github.com/weir-go/weir/limiter"
)

// withBothBounds runs a test in a bubble, with the config of a fixed bound of one call in flight,
// and with that of an adaptive one.
func withBothBounds(t *testing.T, test func(t *testing.T, c weir.Config)) {
	for _, adaptive := range []bool{false, true} {
		t.Run(fmt.Sprintf("adaptive=%t", adaptive), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { test(t, weir.Config{MaxConcurrent: 1, Adaptive: adaptive}) })
		})
	}
}

// occupiedGate returns a gate whose only slot is held until release is called.
func occupiedGate(t *testing.T, c weir.Config) (g *weir.Gate, release func()) {
	g = weir.New("g", c)
	permit, err := g.Allow(bg())
	require.NoError(t, err)
	return g, func() { permit.Record(breaker.Success) }
}

func TestWaitersGetSlotsInOrderOfArrival(t *testing.T) {
	withBothBounds(t, func(t *testing.T, c weir.Config) {
		c.MaxWait = time.Minute
		g, release := occupiedGate(t, c)
		began := time.Now()
		var order []int
		var wg sync.WaitGroup
		for i := range 5 {
			wg.Go(func() {
				require.NoError(t, g.Run(t.Context(), func(context.Context) error {
					order = append(order, i)
					time.Sleep(time.Second)
					return nil
				}))
			})
			synctest.Wait()
		}
		release()
		wg.Wait()
		require.Equal(t, []int{0, 1, 2, 3, 4}, order)
		require.Equal(t, 5*time.Second, time.Since(began))
		require.Equal(t, limiter.Stats{Allowed: 1, Waited: 5}, g.Admissions())
	})
}

// A call that has waited 4s for its token waits at most 6s more for its slot.
func TestMaxWaitIsOneBudgetForTokenAndSlot(t *testing.T) {
	withBothBounds(t, func(t *testing.T, c weir.Config) {
		c.Rate, c.Burst, c.MaxWait = limiter.Per(1, 4*time.Second), 1, 10*time.Second
		g := weir.New("g", c)
		hold := make(chan struct{})
		go func() { _ = g.Run(t.Context(), func(context.Context) error { <-hold; return nil }) }()
		synctest.Wait()
		began := time.Now()
		err := g.Run(t.Context(), succeed)
		require.Equal(t, 10*time.Second, time.Since(began))
		require.ErrorIs(t, err, inflight.ErrFull)
		require.NotErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, `inflight limiter "g" had no slot within 6s (limit 1, MaxWait 10s)`)
		require.Equal(t, 1, g.Limiter().Take(0).Remaining, "the token is given back")
		require.Equal(t, limiter.Stats{Allowed: 1, Refused: 1}, g.Admissions())
		close(hold)
		synctest.Wait()
		require.Zero(t, callsInFlight(g))
	})
}

// Whatever ends a wait for a slot, the call takes nothing, and the slot is there for the next call.
func TestAWaitForASlotThatEndsTakesNothing(t *testing.T) {
	const rate = 3
	for name, end := range map[string]struct {
		do   func(g *weir.Gate, cancel func())
		want error
	}{
		"the caller cancels": {func(_ *weir.Gate, cancel func()) { cancel() }, context.Canceled},
		"the breaker opens":  {func(g *weir.Gate, _ func()) { g.Breaker().OpenFor(time.Hour) }, breaker.ErrOpen},
		"a long hold":        {func(g *weir.Gate, _ func()) { g.Hold(time.Hour) }, inflight.ErrFull},
		"MaxWait is over":    {func(*weir.Gate, func()) { time.Sleep(time.Minute) }, inflight.ErrFull},
	} {
		withBothBounds(t, func(t *testing.T, c weir.Config) {
			c.Rate, c.Burst, c.MaxWait = limiter.Per(1, time.Hour), rate, time.Minute
			g, release := occupiedGate(t, c)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			got := make(chan error, 1)
			go func() { got <- g.Run(ctx, func(context.Context) error { t.Errorf("%s: called", name); return nil }) }()
			synctest.Wait()
			require.Equal(t, rate-1, g.Limiter().Take(0).Remaining, "%s: a call that waits for a slot has no token", name)
			end.do(g, cancel)
			require.ErrorIs(t, <-got, end.want, name)
			g.Breaker().Reset()
			release()
			require.Zero(t, callsInFlight(g), name)
			if name != "a long hold" {
				require.Equal(t, rate-1, g.Limiter().Take(0).Remaining, "%s: the token is given back", name)
				require.NoError(t, g.Run(t.Context(), succeed), name)
			}
		})
	}
}

// A call that gets its slot during a hold gives it back, waits for the end of the hold and takes
// another.
func TestACallWithASlotWaitsOutAHold(t *testing.T) {
	withBothBounds(t, func(t *testing.T, c weir.Config) {
		c.MaxWait = time.Minute
		g, release := occupiedGate(t, withExactHold(c))
		began := time.Now()
		var wg sync.WaitGroup
		wg.Go(func() {
			require.NoError(t, g.Run(t.Context(), succeed))
			require.Equal(t, 20*time.Second, time.Since(began))
		})
		synctest.Wait()
		g.Hold(20 * time.Second)
		time.Sleep(time.Second)
		release()
		synctest.Wait()
		require.Zero(t, callsInFlight(g), "no call holds a slot during a hold")
		wg.Wait()
	})
}

// A call that got its token waits for its slot no longer than the deadline of its context.
func TestAWaitForASlotEndsAtTheDeadline(t *testing.T) {
	withBothBounds(t, func(t *testing.T, c weir.Config) {
		c.MaxWait = time.Minute
		g, release := occupiedGate(t, c)
		defer release()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		err := g.Run(ctx, succeed)
		require.Equal(t, time.Second, time.Since(began))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, err, weir.ErrRefused)
		require.EqualValues(t, 1, g.Admissions().Refused)
	})
}

// If there is no slot for a call that cannot wait, the remote is not called. If a call waits and
// still gets no slot, the remote gets its token back.
func TestARemoteIsNotCalledWithoutASlot(t *testing.T) {
	withBothBounds(t, func(t *testing.T, c weir.Config) {
		for _, maxWait := range []time.Duration{0, time.Second} {
			remote, bucket := newRemote(10), limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.Per(1, time.Hour), Burst: 9})
			g := weir.Join("g", weir.Parts{
				Breaker: breaker.New("b", breaker.Config{}), Limiter: bucket, Remote: remote, MaxWait: maxWait,
				InFlight: inflight.New(inflight.Config{Limit: 1, Adaptive: c.Adaptive}),
			})
			require.NoError(t, g.Run(t.Context(), func(context.Context) error {
				before, asked := remote.bucket.Take(0).Remaining, remote.asked.Load()
				err := g.Run(t.Context(), succeed)
				require.ErrorIs(t, err, inflight.ErrFull)
				require.ErrorContains(t, err, `inflight limiter "g" `)
				require.Equal(t, before, remote.bucket.Take(0).Remaining)
				require.True(t, maxWait > 0 || remote.asked.Load() == asked)
				require.Equal(t, 8, bucket.Take(0).Remaining, "the token is given back")
				return nil
			}))
		}
	})
}
