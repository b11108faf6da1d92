package limiter_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/limiter"
)

// changingLimiter is a limiter without tokens for an hour, together with a change that makes a
// token available.
type changingLimiter struct {
	limiter.TimedLimiter
	change func()
}

// limiterChanges returns all ways in which a limiter can have more tokens than it predicted.
func limiterChanges(t *testing.T) map[string]func() changingLimiter {
	hourly, window := limiter.TokenBucketConfig{Rate: limiter.Per(1, time.Hour), Burst: 1}, limiter.WindowConfig{Limit: 1, Window: hour}
	empty := func(l limiter.TimedLimiter) limiter.TimedLimiter {
		require.True(t, l.Take(1).OK)
		return l
	}
	bucket := func(change func(b *limiter.TokenBucket)) func() changingLimiter {
		return func() changingLimiter {
			b := limiter.NewTokenBucket(hourly)
			return changingLimiter{empty(b), func() { change(b) }}
		}
	}
	refunded := func(l limiter.TimedLimiter) func() changingLimiter {
		return func() changingLimiter { return changingLimiter{empty(l), func() { limiter.Refund(l, 1) }} }
	}
	group := func(change func(g *limiter.Group[string])) func() changingLimiter {
		return func() changingLimiter {
			g := limiter.NewGroup(limiter.GroupConfig[string]{Rate: hourly.Rate, Burst: 1})
			return changingLimiter{empty(g.Get("k")), func() { change(g) }}
		}
	}
	return map[string]func() changingLimiter{
		"SetRate":            bucket(func(b *limiter.TokenBucket) { _ = b.SetRate(limiter.Unlimited()) }),
		"SetRate and -Burst": bucket(func(b *limiter.TokenBucket) { _, _ = b.SetBurst(2), b.SetRate(limiter.PerSecond(1e9)) }),
		"Refund":             bucket(func(b *limiter.TokenBucket) { b.Refund(1) }),
		"a refund of a reservation": func() changingLimiter {
			b := limiter.NewTokenBucket(hourly)
			b.Reserve(1, limiter.Never)
			r := b.Reserve(1, limiter.Never)
			return changingLimiter{b, func() { r.Refund(1); b.Refund(1) }}
		},
		"the end of a queue": func() changingLimiter {
			b := limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: hourly.Rate, Burst: 2})
			b.Take(1)
			ctx, leave := context.WithCancel(t.Context())
			go func() { _ = b.Wait(ctx, 2) }()
			synctest.Wait()
			return changingLimiter{b, leave}
		},
		"a fixed window's":   refunded(limiter.NewFixedWindow(window)),
		"a log's":            refunded(limiter.NewSlidingLog(window)),
		"a sliding window's": refunded(limiter.NewSlidingWindow(window)),
		"a named one's":      refunded(limiter.NewJoint("x", limiter.NewTokenBucket(hourly))),
		"a key's":            group(func(g *limiter.Group[string]) { g.Get("k").RefundNow(1) }),
		"SetTier":            group(func(g *limiter.Group[string]) { _ = g.SetLimits(limiter.Tier{Rate: limiter.Unlimited()}) }),
	}
}

// Two callers wait for a Joint, or a Joint of Joints, but not for the limiter itself.
func TestAChangeOfALimiterWakesTheWaitersOfItsJoint(t *testing.T) {
	for name := range limiterChanges(t) {
		for depth, join := range map[string]func(limiter.TimedLimiter) *limiter.Joint{
			"once": func(l limiter.TimedLimiter) *limiter.Joint {
				return limiter.NewJoint("", newSlidingLog(9, hour), l)
			},
			"twice": func(l limiter.TimedLimiter) *limiter.Joint {
				return limiter.NewJoint("", limiter.NewJoint("", l), newSlidingLog(9, hour))
			},
			"named": func(l limiter.TimedLimiter) *limiter.Joint {
				return limiter.NewJoint("", limiter.NewJoint("x", limiter.NewJoint("", l)))
			},
		} {
			synctest.Test(t, func(t *testing.T) {
				l := limiterChanges(t)[name]()
				ctx, leave := context.WithCancel(t.Context())
				all := newCallers(t, join(l.TimedLimiter))
				all.start(ctx, "first", 1)
				all.start(ctx, "second", 1)
				time.Sleep(sec)
				l.change()
				synctest.Wait()
				time.Sleep(sec)
				synctest.Wait()
				served := all.servedFirst("first")
				require.NotNil(t, served, "%s, %s", name, depth)
				require.NoError(t, served.err, "%s, %s", name, depth)
				require.Equal(t, sec, served.at.Truncate(ms), "%s, %s", name, depth)
				leave()
				all.all.Wait()
			})
		}
	}
}

// Many Joints of one limiter come and go.
func TestAJointLeavesNothingWithItsLimiters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.Per(1, time.Hour), Burst: 1})
		b.Take(1)
		before := heapInUse()
		for range 10_000 {
			require.Error(t, limiter.WaitAtMost(t.Context(), limiter.NewJoint("", b), 1, sec))
		}
		require.Less(t, int64(heapInUse()-before), int64(1<<18))
		b.Refund(1)
	})
}

// Scenario 72, with the limits of one caller.
func TestAJointCountsRefusalsWhereALimiterDoes(t *testing.T) {
	for counts, want := range map[bool]int{false: 1, true: 3} {
		minute := limiter.NewSlidingLogAt(limiter.WindowConfig{Limit: 30, Window: time.Minute, CountRefused: counts}, start)
		both := limiter.NewJoint("", newSlidingLog(1, sec), limiter.NewJoint("x", limiter.NewJoint("", minute)))
		require.Equal(t, 1, offerEvenly(both, 3, 300*ms))
		require.Equal(t, 30-want, minute.TakeAt(start.Add(sec), 0).Remaining)
	}
}

// A caller waits for a window with CountRefused, directly and through Joints of all kinds.
func TestAWaitCountsOnceWithCountRefused(t *testing.T) {
	type behind = func(limiter.TimedLimiter) waitingLimiter
	naming := func(l limiter.TimedLimiter) waitingLimiter {
		return limiter.NewJoint("x", l)
	}
	joining := func(l limiter.TimedLimiter) waitingLimiter {
		return limiter.NewJoint("", l, newSlidingLog(100, hour))
	}
	for name, way := range map[string]behind{
		"named": naming, "joint": joining,
		"named joint": func(l limiter.TimedLimiter) waitingLimiter { return naming(joining(l)) },
		"joint named": func(l limiter.TimedLimiter) waitingLimiter { return joining(naming(l)) },
		"named twice": func(l limiter.TimedLimiter) waitingLimiter { return naming(naming(l)) },
	} {
		synctest.Test(t, func(t *testing.T) {
			log := limiter.NewSlidingLog(limiter.WindowConfig{Limit: 1, Window: time.Minute, CountRefused: true})
			l := way(log)
			require.True(t, l.Take(1).OK)
			time.Sleep(50 * sec)
			began := time.Now()
			require.NoError(t, limiter.WaitAtMost(t.Context(), l, 1, 10*sec), name)
			require.Equal(t, 10*sec, time.Since(began), name)
			require.Error(t, limiter.WaitAtMost(t.Context(), l, 1, sec), name)
			require.Equal(t, time.Minute, log.Take(0).ResetAfter, name)
			time.Sleep(30 * sec)
			require.False(t, l.Take(1).OK, "%s: a refused Take counts", name)
			require.Equal(t, time.Minute, log.Take(0).ResetAfter, name)
		})
	}
}

// A waiting request is tried often before it is served.
func TestALimiterCountsARequestOfItsJointOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerSecond(1), Burst: 1})
		l := limiter.NewJoint("x", b)
		all := limiter.NewJoint("", l, newSlidingLog(100, hour))
		require.True(t, all.Take(1).OK)
		require.False(t, all.Take(1).OK)
		callers := newCallers(t, all)
		callers.start(t.Context(), "w", 1)
		for range 5 {
			time.Sleep(100 * ms)
			b.Refund(0)
			_ = b.SetBurst(1)
		}
		callers.requireResults(arrival{"w", sec, nil})
		require.EqualValues(t, 2, l.Stats().Allowed)
		require.EqualValues(t, 1, l.Stats().Refused, "the Take")
	})
}

func TestALimiterInShadowModeRefusesNothingInAJoint(t *testing.T) {
	shadow := limiter.NewSlidingLogAt(limiter.WindowConfig{Limit: 1, Window: hour, Name: "x", Shadow: true}, start)
	all := limiter.NewJoint("", shadow, newSlidingLog(2, sec))
	runSteps(t, all, step{0, 1, "ok"}, step{0, 1, "ok"}, step{0, 1, "refused 0/1 retry 1s reset 1h0m0s"})
	require.EqualValues(t, 1, shadow.Stats().Shadowed)
}

func TestPeeksAreNotCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerSecond(1), Burst: 1})
		b.Reserve(1, limiter.Never)
		b.Reserve(1, limiter.Never) // one token is owed, so a peek is refused
		n := limiter.NewJoint("x", b)
		keys := limiter.NewGroup(limiter.GroupConfig[int]{Rate: limiter.PerSecond(1), Burst: 1, Name: "x"})
		keys.Get(1).Hold(sec)
		n.Take(0)
		keys.Get(1).Take(0)
		require.NoError(t, n.Wait(t.Context(), 0))
		require.NoError(t, keys.Get(1).Wait(t.Context(), 0))
		require.Zero(t, n.Stats())
		require.Zero(t, keys.Stats())
	})
}

func TestNearIsAShareInDecimals(t *testing.T) {
	for limit := 1; limit <= 1000; limit++ {
		l := limiter.NewFixedWindowAt(limiter.WindowConfig{Limit: limit, Window: hour, Name: "x"}, start)
		within := limit * 8 / 10
		l.TakeAt(start, within)
		require.Zero(t, l.Stats().Near, "%d of %d", within, limit)
		l.TakeAt(start, limit-within)
		require.EqualValues(t, limit-within, l.Stats().Near, "%d of %d", limit, limit)
	}
}

// A wait for a key without room is refused at once, directly and through a Joint.
func TestWaitForAJointOfAKeyWithoutRoomIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := limiter.NewGroup(limiter.GroupConfig[int]{Rate: limiter.Per(1, time.Hour), Burst: 1, MaxKeys: 1})
		require.True(t, g.Get(0).Take(1).OK)
		began := time.Now()
		for _, l := range []limiter.WaitLimiter{
			g.Get(1), limiter.NewJoint("", g.Get(1)), limiter.NewJoint("", newSlidingLog(9, hour), limiter.NewJoint("", g.Get(1))),
			limiter.NewJoint("", limiter.NewJoint("x", g.Get(1))),
		} {
			require.ErrorIs(t, l.Wait(t.Context(), 1), limiter.ErrLimited)
			require.Zero(t, time.Since(began))
		}
		time.Sleep(hour + ms)
		require.NoError(t, limiter.NewJoint("", g.Get(1)).Wait(t.Context(), 1), "there is room now")
	})
}
