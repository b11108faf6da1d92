package limiter_test

import (
	"context"
	"math"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/limiter/guava"
)

// lastMoment is the last time that limiters distinguish from later ones.
const lastMoment time.Duration = 1<<62 - 1

// waitingLimiter is a TimedLimiter that callers can wait for.
type waitingLimiter interface {
	limiter.TimedLimiter
	limiter.WaitLimiter
}

func allWindows(c limiter.WindowConfig, t0 time.Time) map[string]waitingLimiter {
	sliding := limiter.WindowConfig{Limit: c.Limit, Window: c.Window, CountRefused: c.CountRefused, MaxWaiters: c.MaxWaiters}
	return map[string]waitingLimiter{
		"fixed":   limiter.NewFixedWindowAt(c, t0),
		"sliding": limiter.NewSlidingWindowAt(sliding, t0),
		"log":     limiter.NewSlidingLogAt(c, t0),
	}
}

func TestConfigsAcceptTheirBounds(t *testing.T) {
	require.NoError(t, limiter.WindowConfig{Limit: math.MaxInt32, Window: 1}.Validate())
	require.NoError(t, limiter.WindowConfig{Limit: 1, Window: sec, Buckets: 100_000}.Validate())
	require.Error(t, limiter.WindowConfig{Limit: 1, Window: sec, Buckets: 100_001}.Validate())
	require.NoError(t, guava.SmoothWarmingUpConfig{Rate: limiter.PerSecond(1), WarmUp: us}.Validate())
}

func TestRatiosAtTheirBounds(t *testing.T) {
	const (
		longest = time.Duration(math.MaxInt64)
		trip    = time.Duration(1<<43 - 1) // of which 2^20 fit into a Duration
	)
	for _, c := range []struct {
		why    string
		rate   limiter.Rate
		events int64
		period time.Duration
	}{
		{"what is left of the fraction is rounding", limiter.Per(0.7, 1), 7, 10},
		{"one in 2^55 ns", limiter.Per(0x1p-55, 1), 1, 1 << 55},
		{"one in 2^63 ns, the first that is no Duration", limiter.Per(0.25, 1<<61), 1, longest},
		{"a next term far beyond the bound", limiter.Per(10_000.0/10_000_001, hour+1), 1, 1000 * (hour + 1)},
		{"a next term just beyond the bound", limiter.Per(1024.0/(1<<20+1), trip), 1, 1024 * trip},
	} {
		events, period := c.rate.Ratio()
		require.Equal(t, c.events, events, c.why)
		require.Equal(t, c.period, period, c.why)
	}
}

func TestMaxWaitersBoundsTheQueueOfAWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, leave := context.WithCancel(t.Context())
		for name, w := range allWindows(limiter.WindowConfig{Limit: 1, Window: hour, MaxWaiters: 1}, time.Now()) {
			require.True(t, w.Take(1).OK, name)
			newCallers(t, w).start(ctx, "w", 1)
			require.ErrorIs(t, w.WaitAtMost(t.Context(), 1, limiter.Never), limiter.ErrQueueFull, name)
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
				require.Equal(t, "refused 0/2 retry 1ns reset 0s", show(w.TakeAt(time.Now().Add(later), 1)), "%s, %s later", name, later)
			}
		}
		leave()
	})
}

func TestAnEmptyWindowHasNoResetAfterAtAnEarlierTime(t *testing.T) {
	for _, w := range allWindows(limiter.WindowConfig{Limit: 2, Window: sec}, start) {
		take(t, w, step{10 * sec, 0, "ok 2/2 reset 0s"}, step{0, 0, "ok 2/2 reset 0s"})
	}
}

func TestCountedRefusalsOnlyFillAWindow(t *testing.T) {
	for _, w := range allWindows(limiter.WindowConfig{Limit: 5, Window: sec, CountRefused: true}, start) {
		take(t, w, step{0, 5, "ok"}, step{0, 3, "refused"})
		w.Refund(1)
		take(t, w, step{0, 0, "ok 1/5 reset " + w.TakeAt(start, 0).ResetAfter.String()}, step{0, 1, "ok"})
	}
}

// Two callers wait for tokens that were taken in two buckets. The next caller needs another window, and
// only the first of the tokens that are taken now.
func TestASlidingWindowCountsWaitersByBucket(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := limiter.NewSlidingWindow(limiter.WindowConfig{Limit: 2, Window: sec, Buckets: 10})
		require.True(t, w.Take(1).OK)
		time.Sleep(500 * ms)
		require.True(t, w.Take(1).OK)
		l := newCallers(t, w)
		l.start(t.Context(), "a", 1)
		l.start(t.Context(), "b", 1)
		require.Equal(t, "refused 0/2 retry 1.6s reset 1.1s", show(w.Take(1)))
		l.want(arrival{"a", 600 * ms, nil}, arrival{"b", 1100 * ms, nil})
	})
}

func TestASlidingLogKeepsOneEntryPerTime(t *testing.T) {
	const takes = 1000
	log := exactLog(2*takes, sec)
	require.Zero(t, testing.AllocsPerRun(1, func() {
		for range takes {
			log.TakeAt(start, 1)
		}
	}))
	take(t, log, step{0, 1, "refused"})
}

func TestTokensThatReturnAtTheLastTimeAreNotLost(t *testing.T) {
	for _, l := range []func() limiter.TimedLimiter{
		func() limiter.TimedLimiter { return exactLog(1, hour) },
		func() limiter.TimedLimiter { return bucket(limiter.PerHour(1), 1) },
	} {
		take(t, l(), step{lastMoment - hour, 1, "ok 0/1 reset 1h0m0s"}, step{lastMoment - hour, 1, "refused 0/1 retry 1h0m0s reset 1h0m0s"})
		take(t, l(), step{lastMoment - hour + 1, 1, "ok 0/1 reset never"})
	}
}

// The rate is not counted in nanoseconds, and the times would overflow.
func TestANewBucketIsFullAtAnyTime(t *testing.T) {
	for _, at := range []time.Duration{250 * year, -250 * year} {
		fresh := func() *limiter.TokenBucket { return bucket(limiter.PerSecond(3), 3) }
		group := limiter.NewGroupAt(limiter.GroupConfig[int]{Rate: limiter.PerSecond(3), Burst: 3}, start)
		take(t, fresh(), step{at, 0, "ok 3/3 reset 0s"})
		for how, r := range map[string]limiter.Result{
			"taken":    fresh().TakeAt(start.Add(at), 1),
			"reserved": fresh().ReserveAt(start.Add(at), 1, 0).Result,
			"of a key": group.Get(1).TakeAt(start.Add(at), 1),
		} {
			require.True(t, r.OK, "%s at %s", how, at)
			require.Equal(t, 2, r.Remaining, "%s at %s", how, at)
		}
	}
	take(t, bucket(limiter.Per(4, 1), 8), step{-250 * year, 8, "ok"}) // the fastest rate has the shortest life
}

func TestSlowBucketsAreExact(t *testing.T) {
	take(t, bucket(limiter.Every(1<<61), 1), step{0, 1, "ok"}, step{0, 1, "refused 0/1 retry " + span(1<<61) + " reset " + span(1<<61)})
	r := bucket(limiter.Every(292*year), 1<<30).ReserveAt(start, 1, 0)
	require.True(t, r.OK)
	require.Zero(t, r.Delay)
}

func TestADebtTooLongForTheNewRateIsOwedForever(t *testing.T) {
	b := bucket(limiter.Every(1), 1)
	for range 41 {
		require.True(t, b.ReserveAt(start, 1, sec).OK)
	}
	require.NoError(t, b.SetRateAt(start, limiter.Every(100*year)))
	take(t, b, step{0, 1, "refused 0/1 retry never reset never"})
}

// The rate becomes so low that the next token comes after the life of the bucket.
func TestATurnBeyondTheLifeOfABucketNeverComes(t *testing.T) {
	for _, c := range []struct {
		age   time.Duration
		burst int
		slow  time.Duration
		want  string
	}{
		{80 * year, 1, 36 * year, "refused 0/1 retry never reset never"}, // in nanoseconds
		{0, 3, 100 * year, "refused 0/3 retry never reset never"},        // in longer units
	} {
		synctest.Test(t, func(t *testing.T) {
			b := limiter.NewTokenBucketAt(limiter.TokenBucketConfig{Rate: limiter.PerSecond(1), Burst: c.burst}, time.Now().Add(-c.age))
			require.True(t, b.Take(c.burst).OK)
			ctx, leave := context.WithCancel(t.Context())
			callers := newCallers(t, b)
			for range 30 {
				callers.start(ctx, "w", 1)
			}
			require.NoError(t, b.SetRate(limiter.Every(c.slow)))
			require.Equal(t, c.want, show(b.Take(c.burst)))
			leave()
		})
	}
}

func TestTakeFastTakesAllTokens(t *testing.T) {
	b := bucket(limiter.PerSecond(1), 2)
	require.True(t, b.TakeFast(0, 2), "all at once")
	require.False(t, b.TakeFast(sec-1, 1))
	require.True(t, b.TakeFast(sec, 1))

	none := bucket(limiter.PerSecond(1), limiter.Off)
	require.False(t, none.TakeFast(0, 1))
}

func TestWaitAtMostZeroReportsNoTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerSecond(1), Burst: 1})
		require.True(t, b.Take(1).OK)
		require.EqualError(t, b.WaitAtMost(t.Context(), 1, 0), "limiter: no tokens left (limit 1), retry in 1s")
		require.EqualError(t, b.WaitAtMost(t.Context(), 1, 1), "limiter: wait longer than wanted (limit 1), retry in 1s")
	})
}

// Reserve is called when there are enough tokens for the waiter and for the caller.
func TestNothingIsReservedBeforeTheFirstWaiterIsServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerSecond(1), Burst: 3})
		require.True(t, b.Take(3).OK)
		callers := newCallers(t, b)
		callers.start(t.Context(), "w", 1)
		later := time.Now().Add(10 * sec)
		require.Equal(t, "refused 0/3 retry 1ns reset 1s", show(b.ReserveAt(later, 1, hour).Result))
		peek := b.ReserveAt(later, 0, hour)
		require.False(t, peek.OK)
		require.Zero(t, peek.Remaining)
		require.False(t, peek.CancelAt(later))
		callers.want(arrival{"w", sec, nil})
	})
}

func TestACancelledReservationWakesWaiters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerHour(1), Burst: 1})
		require.True(t, b.Take(1).OK)
		r := b.Reserve(1, hour)
		require.True(t, r.OK)
		callers := newCallers(t, b)
		callers.start(t.Context(), "w", 1)
		require.True(t, r.Cancel())
		callers.want(arrival{"w", hour, nil})
	})
}

func TestAnUnlimitedReservationCanBeCancelledUntilItIsDue(t *testing.T) {
	for after, want := range map[time.Duration]bool{0: true, 1: false} {
		r := bucket(limiter.Unlimited(), 0).ReserveAt(start.Add(sec), 5, 0)
		require.True(t, r.OK)
		require.Equal(t, want, r.CancelAt(start.Add(sec+after)), "%s after", after)
	}
}

func TestALeakyBucketAcceptsUpToItsCapacity(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := limiter.NewLeakyBucket(limiter.LeakyBucketConfig{Rate: limiter.PerSecond(1), Capacity: 3})
		began := time.Now()
		require.NoError(t, b.Wait(t.Context(), 0))
		require.NoError(t, b.Wait(t.Context(), 3))
		require.Zero(t, time.Since(began))
	})
}

func TestALeakyBucketCountsWaiters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := limiter.NewLeakyBucket(limiter.LeakyBucketConfig{Rate: limiter.PerSecond(2), Capacity: 6})
		callers := newCallers(t, b)
		for _, who := range []string{"a", "b", "c"} {
			callers.start(t.Context(), who, 1)
		}
		require.EqualError(t, b.WaitAtMost(t.Context(), 1, 1500*ms-1), "limiter: wait longer than wanted (limit 6), retry in 1.5s")
		require.NoError(t, b.WaitAtMost(t.Context(), 1, 1500*ms))
		callers.want(arrival{"a", 0, nil}, arrival{"b", 500 * ms, nil}, arrival{"c", sec, nil})
		require.Equal(t, 1500*ms, time.Since(callers.began))
	})
}

func TestALeakyBucketRefusesAfterItsLife(t *testing.T) {
	for _, perSecond := range []float64{1, 3} {
		synctest.Test(t, func(t *testing.T) {
			b := limiter.NewLeakyBucket(limiter.LeakyBucketConfig{Rate: limiter.PerSecond(perSecond)})
			time.Sleep(200 * year)
			require.NoError(t, b.Wait(t.Context(), 1), "the first request to an empty bucket")
			require.ErrorIs(t, b.Wait(t.Context(), 1), limiter.ErrLimited)
		})
	}
}

func TestALeakyBucketRefusesATurnThatNeverComes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := limiter.NewLeakyBucket(limiter.LeakyBucketConfig{Rate: limiter.Every(year), Capacity: 1000})
		time.Sleep(40 * year)
		require.NoError(t, b.Wait(t.Context(), 40))
		ctx, leave := context.WithCancel(t.Context())
		callers := newCallers(t, b)
		callers.start(ctx, "w", 300)
		require.EqualError(t, b.Wait(t.Context(), 1), "limiter: no tokens left (limit 1000)")
		leave()
		callers.all.Wait()
	})
}

func TestPacersCountWaiters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := guava.NewSmoothBursty(guava.SmoothBurstyConfig{Rate: limiter.PerSecond(1)})
		callers := newCallers(t, s)
		for _, who := range []string{"a", "b", "c"} {
			callers.start(t.Context(), who, 1)
		}
		err := s.WaitAtMost(t.Context(), 1, 3*sec-1)
		require.EqualError(t, err, "limiter: wait longer than wanted, retry in 3s")
		require.NoError(t, s.WaitAtMost(t.Context(), 1, 3*sec))
		require.Equal(t, 3*sec, time.Since(callers.began))
	})
}

// Each request comes at another time. With CountRefused, refused requests are stored too.
func TestASlidingLogKeepsAtMostLimitEntries(t *testing.T) {
	const limit, requests = 1000, 200_000
	for _, countRefused := range []bool{false, true} {
		before := heap()
		log := limiter.NewSlidingLogAt(limiter.WindowConfig{Limit: limit, Window: hour, CountRefused: countRefused}, start)
		for i := range requests {
			log.TakeAt(start.Add(time.Duration(i)*ms), 1)
		}
		grown := int64(heap() - before)
		t.Logf("%d bytes, refused requests count: %v", grown, countRefused)
		require.Less(t, grown, int64(50*limit))
		runtime.KeepAlive(log)
	}
}
