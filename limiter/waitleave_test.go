package limiter_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/testenv"
	"github.com/weir-go/weir/limiter"
)

func TestWaitTakesNothingForAContextThatIsDone(t *testing.T) { // scenario 28
	synctest.Test(t, func(t *testing.T) {
		b := limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerSecond(1), Burst: 1})
		cancelled, cancel := context.WithCancel(t.Context())
		cancel()
		for range 50 {
			require.Equal(t, context.Canceled, b.Wait(cancelled, 1))
		}
		require.True(t, b.Take(1).OK)
	})
}

func TestWaitEndsWithTheContext(t *testing.T) { // scenario 30
	synctest.Test(t, func(t *testing.T) {
		b := limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerSecond(1), Burst: 3})
		l := newCallers(t, b)
		b.Take(3)
		ctx, cancel := context.WithCancel(t.Context())
		l.start(ctx, "impatient", 3)
		time.Sleep(2 * sec)
		cancel()
		l.requireResults(arrival{"impatient", 2 * sec, context.Canceled})
		require.NoError(t, b.Wait(t.Context(), 2), "its tokens are still there")
		require.Equal(t, 2*sec, time.Since(l.began))
	})
}

func TestTheNextWaiterIsServedWhenTheFirstLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerSecond(1), Burst: 3})
		l := newCallers(t, b)
		b.Take(3)
		head, leave := context.WithCancel(t.Context())
		l.start(head, "head", 3)
		l.start(t.Context(), "next", 1)
		time.Sleep(500 * ms)
		leave()
		l.requireResults(arrival{"head", 500 * ms, context.Canceled}, arrival{"next", 1 * sec, nil})
	})
}

// Scenario 27: waiters that leave owe nothing.
func TestCancelledWaitersLeaveNoDebt(t *testing.T) {
	asTheyCame := func([]context.CancelFunc) {}
	atRandom := func(leave []context.CancelFunc) {
		rand.Shuffle(len(leave), func(i, j int) { leave[i], leave[j] = leave[j], leave[i] })
	}
	for _, c := range []struct {
		name    string
		waiters int
		order   func([]context.CancelFunc)
	}{
		{"first to last", 1000, asTheyCame},
		{"last to first", 1000, slices.Reverse[[]context.CancelFunc]},
		{"at random", 1000, atRandom},
		{"many at random", testenv.Repeat(100_000, 5_000), atRandom},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { leaveInOrder(t, c.waiters, c.order) })
		})
	}
}

func leaveInOrder(t *testing.T, waiters int, order func([]context.CancelFunc)) {
	b := limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerSecond(10), Burst: 10})
	b.Take(10)
	var all sync.WaitGroup
	var served, left int
	var mu sync.Mutex
	leave := make([]context.CancelFunc, waiters)
	for i := range leave {
		ctx, cancel := context.WithCancel(t.Context())
		leave[i] = cancel
		all.Go(func() {
			err := b.Wait(ctx, 1)
			mu.Lock()
			defer mu.Unlock()
			if errors.Is(err, context.Canceled) {
				left++
			} else if err == nil {
				served++
			}
		})
	}
	synctest.Wait()
	time.Sleep(sec)
	synctest.Wait() // the tenth waiter is served at this moment
	order(leave)
	for _, cancel := range leave {
		cancel()
	}
	all.Wait()
	require.Equal(t, 10, served)
	require.Equal(t, waiters-10, left)
	began := time.Now()
	require.NoError(t, b.Wait(t.Context(), 1))
	require.LessOrEqual(t, time.Since(began), 100*ms)
}

// Stress on the real clock: callers wait and leave at random, and the tokens taken stay within the
// limit.
func TestWaitStress(t *testing.T) {
	b := limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerSecond(20_000), Burst: 10})
	began, served := time.Now(), 0
	var mu sync.Mutex
	callAtOnce(50, func() bool {
		for i := range 40 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rand.IntN(20))*ms)
			n := 1 + i%3
			err := b.Wait(ctx, n)
			cancel()
			if err == nil {
				mu.Lock()
				served += n
				mu.Unlock()
			}
		}
		return true
	})
	require.LessOrEqual(t, float64(served), 11+20_000*time.Since(began).Seconds())
	require.NoError(t, limiter.WaitAtMost(t.Context(), b, 10, sec), "the queue is not empty")
}
