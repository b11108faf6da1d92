package limiter_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/limiter/guava"
)

// obstructedLimiter is a limiter that has no tokens for about half a second, together with a change
// of it that makes the wait longer.
type obstructedLimiter struct {
	wait     func(ctx context.Context, limit time.Duration) error
	obstruct func()
}

// newObstructedLimiter returns an obstructed for a limiter without tokens.
func newObstructedLimiter(l limiter.WaitLimiter, n int, obstruct func()) obstructedLimiter {
	return obstructedLimiter{func(ctx context.Context, limit time.Duration) error { return limiter.WaitAtMost(ctx, l, n, limit) }, obstruct}
}

func obstructedPacer(p *guava.RateLimiter) obstructedLimiter {
	p.Reserve(1, limiter.Never)
	return newObstructedLimiter(p, 1, func() { p.Reserve(7200, limiter.Never) })
}

// obstructedLimiters returns all limiters, with all changes that can make a wait
// longer.
func obstructedLimiters() map[string]func() obstructedLimiter {
	empty := func(c limiter.TokenBucketConfig) *limiter.TokenBucket {
		b := limiter.NewTokenBucket(c)
		b.Take(1)
		return b
	}
	plain := limiter.TokenBucketConfig{Rate: limiter.PerSecond(2), Burst: 1}
	hourly := limiter.Per(1, time.Hour)
	group := func(change func(g *limiter.Group[string])) func() obstructedLimiter {
		return func() obstructedLimiter {
			g := limiter.NewGroup(limiter.GroupConfig[string]{Rate: plain.Rate, Burst: 1})
			g.Get("k").Take(1)
			return newObstructedLimiter(g.Get("k"), 1, func() { change(g) })
		}
	}
	return map[string]func() obstructedLimiter{
		"bucket, SetRate": func() obstructedLimiter {
			b := empty(plain)
			return newObstructedLimiter(b, 1, func() { _ = b.SetRate(hourly) })
		},
		"bucket, Hold": func() obstructedLimiter {
			b := empty(plain)
			return newObstructedLimiter(b, 1, func() { b.Hold(hour) })
		},
		"named, Hold": func() obstructedLimiter {
			n := limiter.NewJoint("n", empty(plain))
			return newObstructedLimiter(n, 1, func() { n.Hold(hour) })
		},
		"joint, SetRate of a member": func() obstructedLimiter {
			b := empty(plain)
			return newObstructedLimiter(limiter.NewJoint("", b, newSlidingLog(9, hour)), 1, func() { _ = b.SetRate(hourly) })
		},
		"joint, Hold": func() obstructedLimiter {
			j := limiter.NewJoint("", empty(plain))
			return newObstructedLimiter(j, 1, func() { j.Hold(hour) })
		},
		"joint, a member is emptied": func() obstructedLimiter {
			b := limiter.NewSlidingLog(limiter.WindowConfig{Limit: 9, Window: hour})
			return newObstructedLimiter(limiter.NewJoint("", empty(plain), b), 1, func() { b.Take(9) })
		},
		"named group, Hold": func() obstructedLimiter {
			g := limiter.NewGroup(limiter.GroupConfig[string]{Rate: plain.Rate, Burst: 1, Name: "g"})
			g.Get("k").Take(1)
			return obstructedLimiter{func(ctx context.Context, limit time.Duration) error {
				return limiter.WaitAtMost(ctx, g.Get("k"), 1, limit)
			}, func() { g.Get("k").Hold(hour) }}
		},
		"key, SetTier": group(func(g *limiter.Group[string]) { _ = g.SetLimits(limiter.Tier{Rate: hourly, Burst: 1}) }),
		"key, Hold":    group(func(g *limiter.Group[string]) { g.Get("k").Hold(hour) }),
		"smooth, Reserve": func() obstructedLimiter {
			return obstructedPacer(guava.NewSmoothBursty(guava.SmoothBurstyConfig{Rate: plain.Rate}))
		},
		"warm-up, Reserve": func() obstructedLimiter {
			return obstructedPacer(guava.NewSmoothWarmingUp(guava.SmoothWarmingUpConfig{Rate: plain.Rate, WarmUp: sec, ColdFactor: 1}))
		},
	}
}

// Several callers wait, and then a change makes their waits too long. Each caller, first or not,
// leaves after its maximum wait or at its deadline.
func TestEveryWaiterLeavesOnTime(t *testing.T) {
	for name, make := range obstructedLimiters() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := make()
				began := time.Now()
				late, stop := context.WithDeadline(t.Context(), began.Add(8*sec))
				defer stop()
				left := map[time.Duration]error{}
				var mu sync.Mutex
				wait := func(ctx context.Context, limit time.Duration) {
					go func() {
						err := o.wait(ctx, limit)
						mu.Lock()
						defer mu.Unlock()
						left[time.Since(began)] = err
					}()
					synctest.Wait()
				}
				for _, limit := range []time.Duration{5 * sec, 7 * sec, 6 * sec} {
					wait(t.Context(), limit)
				}
				wait(late, limiter.Never)
				for time.Sleep(100 * ms); time.Since(began) < 10*sec; time.Sleep(50 * ms) {
					o.obstruct()
				}
				synctest.Wait()
				mu.Lock()
				defer mu.Unlock()
				require.Len(t, left, 4)
				for _, at := range []time.Duration{5 * sec, 6 * sec, 7 * sec} {
					require.ErrorIs(t, left[at], limiter.ErrLimited, "at %s", at)
					require.ErrorContains(t, left[at], "no tokens left")
				}
				require.ErrorIs(t, left[8*sec], context.DeadlineExceeded)
			})
		})
	}
}
