package limiter_test

import (
	"context"
	"math"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/testenv"
	"github.com/weir-go/weir/limiter"
)

func allWindows(c limiter.WindowConfig, t0 time.Time) map[string]waitingLimiter {
	sliding := limiter.WindowConfig{Limit: c.Limit, Window: c.Window, CountRefused: c.CountRefused, MaxWaiters: c.MaxWaiters}
	return map[string]waitingLimiter{
		"fixed":   limiter.NewFixedWindowAt(c, t0),
		"sliding": limiter.NewSlidingWindowAt(sliding, t0),
		"log":     limiter.NewSlidingLogAt(c, t0),
	}
}

func TestMaxWaitersBoundsTheQueueOfAWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, leave := context.WithCancel(t.Context())
		for name, w := range allWindows(limiter.WindowConfig{Limit: 1, Window: hour, MaxWaiters: 1}, time.Now()) {
			require.True(t, w.Take(1).OK, name)
			newCallers(t, w).start(ctx, "w", 1)
			requireQueueFull(t, limiter.WaitAtMost(t.Context(), w, 1, limiter.Never), name)
		}
		leave()
	})
}

func TestAWindowRefusesTooManyTokensForeverWhileACallerWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, leave := context.WithCancel(t.Context())
		for name, w := range allWindows(limiter.WindowConfig{Limit: 2, Window: hour}, time.Now()) {
			require.True(t, w.Take(2).OK, name)
			newCallers(t, w).start(ctx, "w", 1)
			for _, n := range []int{3, -1} {
				r := w.Take(n)
				require.False(t, r.OK, "%s: Take(%d)", name, n)
				require.Equal(t, limiter.Never, r.RetryAfter, "%s: Take(%d)", name, n)
			}
			require.EqualError(t, w.Wait(t.Context(), 3), "limiter: more than the limit (limit 2)", name)
		}
		leave()
	})
}

// Take is called when there are enough tokens for the waiter and for the caller.
func TestNoCallerOvertakesTheFirstWaiterOfAWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Minute) // not at a window boundary
		ctx, leave := context.WithCancel(t.Context())
		for _, later := range []time.Duration{2 * hour, math.MaxInt64} {
			for name, w := range allWindows(limiter.WindowConfig{Limit: 2, Window: hour}, time.Now()) {
				require.True(t, w.Take(2).OK, name)
				newCallers(t, w).start(ctx, "w", 1)
				require.Equal(t, "refused 0/2 retry 1ns reset 0s", resultText(w.TakeAt(time.Now().Add(later), 1)), "%s, %s later", name, later)
			}
		}
		leave()
	})
}

func TestAnEmptyWindowHasNoResetAfterAtAnEarlierTime(t *testing.T) {
	for _, w := range allWindows(limiter.WindowConfig{Limit: 2, Window: sec}, start) {
		runSteps(t, w, step{10 * sec, 0, "ok 2/2 reset 0s"}, step{0, 0, "ok 2/2 reset 0s"})
	}
}

func TestCountedRefusalsOnlyFillAWindow(t *testing.T) {
	for _, w := range allWindows(limiter.WindowConfig{Limit: 5, Window: sec, CountRefused: true}, start) {
		runSteps(t, w, step{0, 5, "ok"}, step{0, 3, "refused"})
		limiter.Refund(w, 1)
		runSteps(t, w, step{0, 0, "ok 1/5 reset " + w.TakeAt(start, 0).ResetAfter.String()}, step{0, 1, "ok"})
	}
}

// Two callers wait for tokens that were taken in two buckets. The next caller has to wait for one
// window and a part more than the first of them.
func TestASlidingWindowCountsWaitersByBucket(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := limiter.NewSlidingWindow(limiter.WindowConfig{Limit: 2, Window: sec, Buckets: 10})
		require.True(t, w.Take(1).OK)
		time.Sleep(500 * ms)
		require.True(t, w.Take(1).OK)
		l := newCallers(t, w)
		l.start(t.Context(), "a", 1)
		l.start(t.Context(), "b", 1)
		require.Equal(t, "refused 0/2 retry 1.7s reset 1.1s", resultText(w.Take(1)))
		l.requireResults(arrival{"a", 600 * ms, nil}, arrival{"b", 1100 * ms, nil})
	})
}

func TestASlidingLogKeepsOneEntryPerTime(t *testing.T) {
	const takes = 1000
	log := newSlidingLog(2*takes, sec)
	require.Zero(t, testing.AllocsPerRun(1, func() {
		for range takes {
			log.TakeAt(start, 1)
		}
	}))
	runSteps(t, log, step{0, 1, "refused"})
}

// Each request comes at a different time. With CountRefused, refused requests are stored too. With
// WEIR_SOAK=true there are ten times as many.
func TestASlidingLogKeepsAtMostLimitEntries(t *testing.T) {
	const limit = 1000
	requests := testenv.Repeat(200_000, 20_000)
	for _, countRefused := range []bool{false, true} {
		before := heapInUse()
		log := limiter.NewSlidingLogAt(limiter.WindowConfig{Limit: limit, Window: hour, CountRefused: countRefused}, start)
		for i := range requests {
			log.TakeAt(start.Add(time.Duration(i)*ms), 1)
		}
		grown := int64(heapInUse() - before)
		t.Logf("%d bytes, refused requests count: %v", grown, countRefused)
		require.Less(t, grown, int64(50*limit))
		runtime.KeepAlive(log)
	}
}
