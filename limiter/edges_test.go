package limiter_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/limiter"
)

func TestARefundToAJointWakesWaiters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := limiter.NewJoint("", limiter.NewSlidingLog(limiter.WindowConfig{Limit: 2, Window: hour}))
		require.True(t, l.Take(2).OK)
		callers := newCallers(t, l)
		callers.start(t.Context(), "a", 1)
		time.Sleep(sec)
		limiter.Refund(l, 1)
		callers.requireResults(arrival{"a", sec, nil})
	})
}

// growingLimiter is a limiter that has more tokens at a Take than it had at the peek before it.
type growingLimiter struct {
	limiter.TimedLimiter
	given, back int
}

func (l *growingLimiter) TakeAt(t time.Time, n int) limiter.Result {
	r := l.TimedLimiter.TakeAt(t, n)
	if n > 0 && l.given == 0 {
		limiter.Refund(l, 1)
		r = l.TimedLimiter.TakeAt(t, n)
		l.given = n
	}
	return r
}

func (l *growingLimiter) Refund(_ time.Time, n int) {
	l.back += n
	limiter.Refund(l.TimedLimiter, n)
}

func TestAJointGivesBackTokensTakenByAPeek(t *testing.T) {
	l := &growingLimiter{TimedLimiter: newSlidingLog(1, hour)}
	runSteps(t, l.TimedLimiter, step{0, 1, "ok"})
	full := newSlidingLog(1, hour)
	runSteps(t, full, step{0, 1, "ok"})
	runSteps(t, limiter.NewJoint("", l, full), step{0, 1, "refused"})
	require.Equal(t, 1, l.given)
	require.Equal(t, 2, l.back, "the added tokens minus the taken ones")
	runSteps(t, l.TimedLimiter, step{0, 1, "ok"})
}

func TestARefundWakesWaiters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		config := limiter.WindowConfig{Limit: 2, Window: hour}
		for name, l := range map[string]interface {
			limiter.TimedLimiter
			limiter.WaitLimiter
		}{
			"bucket":  limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.Per(1, time.Hour), Burst: 2}),
			"fixed":   limiter.NewFixedWindow(config),
			"sliding": limiter.NewSlidingWindow(limiter.WindowConfig{Limit: 2, Window: hour}),
			"log":     limiter.NewSlidingLog(config),
			"key":     limiter.NewGroup(limiter.GroupConfig[string]{Rate: limiter.Per(1, time.Hour), Burst: 2}).Get("k"),
		} {
			require.True(t, l.Take(2).OK, name)
			callers := newCallers(t, l)
			callers.start(t.Context(), name, 1)
			time.Sleep(sec)
			limiter.Refund(l, 1)
			callers.requireResults(arrival{name, sec, nil})
		}
	})
}

// So many callers wait that the turn of the next one comes after the life of the limiter.
func TestAQueueBeyondTheLifeOfALimiterIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := limiter.NewSlidingLog(limiter.WindowConfig{Limit: 1, Window: 36 * year})
		time.Sleep(sec)
		require.True(t, l.Take(1).OK)
		ctx, leave := context.WithCancel(t.Context())
		callers := newCallers(t, l)
		for range 5 {
			callers.start(ctx, "w", 1)
		}
		require.Equal(t, limiter.Never, l.Take(1).RetryAfter)
		leave()
		callers.all.Wait()
	})
}

func TestADeadlineDuringAWaitHasARetryAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerSecond(1), Burst: 1})
		require.True(t, b.Take(1).OK)
		ctx, cancel := context.WithTimeout(t.Context(), 1500*ms)
		defer cancel()
		callers := newCallers(t, b)
		callers.start(ctx, "w", 1)
		require.NoError(t, b.SetRate(limiter.Per(1, time.Hour)))
		callers.all.Wait()
		var limited *limiter.LimitedError
		require.ErrorAs(t, callers.log[0].err, &limited)
		require.ErrorIs(t, limited, context.DeadlineExceeded)
		require.Equal(t, 1, limited.Limit)
		require.Equal(t, hour-1500*ms, limited.RetryAfter())
	})
}

func TestNothingIsReservedWhileACallerWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerSecond(1), Burst: 1})
		require.True(t, b.Take(1).OK)
		callers := newCallers(t, b)
		callers.start(t.Context(), "w", 1)
		for _, n := range []int{0, 1} {
			r := b.Reserve(n, hour)
			require.False(t, r.OK, "Reserve(%d)", n)
			r.Refund(1)
		}
		callers.requireResults(arrival{"w", sec, nil})
	})
}

// The ratios have the longest period and the most events possible.
func TestRatiosAreExactToTheirBounds(t *testing.T) {
	const odd = hour + 1
	events, period := limiter.Per(1.0/2562047, odd).Ratio()
	require.Equal(t, int64(1), events)
	require.Equal(t, 2562047*odd, period)

	const fortnight = 14 * 24 * hour
	events, period = limiter.Per(1<<52-0.5, fortnight).Ratio()
	require.Equal(t, int64(1<<53-1), events)
	require.Equal(t, 2*fortnight, period)
}

func TestAPeekIsAllowedWithCountRefused(t *testing.T) {
	log := limiter.NewSlidingLogAt(limiter.WindowConfig{Limit: 2, Window: sec, CountRefused: true}, start)
	runSteps(t, log, step{0, 2, "ok"}, step{0, 2, "refused"}, step{0, 0, "ok 0/2 reset 1s"})
}

func TestEveryKeyIsRememberedOrCountedAsEvicted(t *testing.T) {
	g := limiter.NewGroupAt(limiter.GroupConfig[int]{Rate: limiter.PerSecond(1), Burst: 1, MaxKeys: 100}, start)
	allowed := 0
	for round := range 5 {
		for i := range 100 {
			if g.Get(100*round+i).TakeAt(start.Add(time.Duration(round)*time.Minute), 1).OK {
				allowed++
			}
		}
		require.EqualValues(t, allowed, int64(g.Len())+g.Evictions(), "round %d", round)
	}
	require.Greater(t, allowed, 400)
}

// New keys evict idle keys, by taking their slot or by a rebuild of the table. Then the idle keys
// are used at the earlier time at which they were in use.
func TestAnEvictedKeyGainsNothingAtAnEarlierTime(t *testing.T) {
	for range 60 {
		g := limiter.NewGroupAt(limiter.GroupConfig[int]{Rate: limiter.PerSecond(1), Burst: 1, MaxKeys: 100}, start)
		for key := range 6 {
			require.True(t, g.Get(key).TakeAt(start.Add(10*sec), 1).OK)
		}
		require.True(t, g.Get(99).TakeAt(start.Add(60*sec), 1).OK)
		for key := range 6 {
			require.False(t, g.Get(key).TakeAt(start.Add(10*sec), 1).OK, "key %d", key)
		}
	}
}

func TestNewKeysSeldomRebuildTheTable(t *testing.T) {
	const keys = 10_000
	require.Less(t, testing.AllocsPerRun(1, func() {
		g := limiter.NewGroupAt(limiter.GroupConfig[int]{Rate: limiter.Per(1, time.Hour), Burst: 1}, start)
		for key := range keys {
			g.Get(key).TakeAt(start, 1)
		}
	}), keys/10.0)
}
