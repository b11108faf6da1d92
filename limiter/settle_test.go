package limiter_test

import (
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/testenv"
	"github.com/weir-go/weir/limiter"
)

func perMinute(n int) *limiter.TokenBucket {
	return limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerMinute(float64(n)), Burst: n})
}

func keysPerMinute(n, maxKeys int, shareNew bool) *limiter.Group[string] {
	return limiter.NewGroup(limiter.GroupConfig[string]{Rate: limiter.PerMinute(float64(n)), Burst: n, MaxKeys: maxKeys, ShareNew: shareNew})
}

// Limiters of 60 tokens per minute. A reservation of 10 costs 100 in the end, so there is a debt of
// 40. A bucket and a fixed window pay it at the rate; other windows count it for a minute.
func TestWhatIsUsedBeyondAReservationDelaysLaterRequests(t *testing.T) {
	window := limiter.WindowConfig{Limit: 60, Window: time.Minute}
	for name, c := range map[string]struct {
		limiter func() limiter.Limiter
		delay   time.Duration // until there is one token
	}{
		"bucket": {func() limiter.Limiter { return perMinute(60) }, 41 * time.Second},
		"key":    {func() limiter.Limiter { return keysPerMinute(60, 10, false).Get("a") }, 41 * time.Second},
		"key without room": {func() limiter.Limiter {
			full := keysPerMinute(60, 1, true)
			full.Get("first").Take(60)
			return full.Get("a")
		}, 41 * time.Second},
		"leaky": {func() limiter.Limiter {
			return limiter.NewLeakyBucket(limiter.LeakyBucketConfig{Rate: limiter.PerMinute(60)})
		}, 100 * time.Second},
		"fixed":   {func() limiter.Limiter { return limiter.NewFixedWindow(window) }, time.Minute},
		"sliding": {func() limiter.Limiter { return limiter.NewSlidingWindow(window) }, 66 * time.Second},
		"log":     {func() limiter.Limiter { return limiter.NewSlidingLog(window) }, time.Minute},
		"joint":   {func() limiter.Limiter { return limiter.NewJoint("", perMinute(60), perMinute(600)) }, 41 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			l := c.limiter()
			n := 10
			if name == "leaky" {
				n = 1
			}
			r := limiter.Reserve(l, n)
			require.True(t, r.OK, name)
			r.Settle(100)
			r.Settle(1000)
			r.Refund(1000)
			refused := l.Take(1)
			require.False(t, refused.OK, name)
			require.Zero(t, refused.Remaining, name)
			require.Equal(t, c.delay, refused.RetryAfter, name)
			time.Sleep(c.delay - 1)
			require.False(t, l.Take(1).OK, name)
			time.Sleep(time.Nanosecond)
			require.True(t, l.Take(1).OK, name)
		})
	}
}

func TestAFixedWindowPaysADebtByOneLimitPerWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := limiter.NewFixedWindow(limiter.WindowConfig{Limit: 10, Window: time.Second, CountRefused: true})
		limiter.Reserve(l, 1).Settle(35)
		require.False(t, l.Take(10).OK, "and is counted as refused")
		refused := l.Take(1)
		require.Equal(t, 3*time.Second, refused.RetryAfter)
		time.Sleep(3*time.Second - 1)
		require.Zero(t, l.Take(0).Remaining)
		time.Sleep(time.Nanosecond)
		require.Equal(t, 5, l.Take(0).Remaining)
	})
}

// Tokens that were reserved and not used come back, as by Refund.
func TestWhatIsNotUsedOfAReservationComesBack(t *testing.T) {
	window := limiter.WindowConfig{Limit: 60, Window: time.Minute}
	for name, l := range map[string]limiter.Limiter{
		"bucket": perMinute(60), "key": keysPerMinute(60, 10, false).Get("a"), "fixed": limiter.NewFixedWindow(window),
		"sliding": limiter.NewSlidingWindow(window), "log": limiter.NewSlidingLog(window), "joint": limiter.NewJoint("", perMinute(60), perMinute(60)),
	} {
		for _, settled := range []int{40, 0, -1} {
			r := limiter.Reserve(l, 60)
			require.True(t, r.OK, name)
			r.Settle(settled)
			r.Settle(0)
			require.Equal(t, 60-max(settled, 0), l.Take(0).Remaining, name)
			if settled > 0 {
				require.True(t, l.Take(20).OK, name)
				require.False(t, l.Take(1).OK, name)
				l = map[string]limiter.Limiter{
					"bucket": perMinute(60), "key": keysPerMinute(60, 10, false).Get("a"), "fixed": limiter.NewFixedWindow(window),
					"sliding": limiter.NewSlidingWindow(window), "log": limiter.NewSlidingLog(window), "joint": limiter.NewJoint("", perMinute(60), perMinute(60)),
				}[name]
			}
		}
	}
}

func TestSettleDoesNothingForARefusedReservation(t *testing.T) {
	b := perMinute(60)
	r := limiter.Reserve(b, 61)
	require.False(t, r.OK)
	r.Settle(100)
	require.Equal(t, 60, b.Take(0).Remaining)
	off := limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerMinute(1), Burst: limiter.Off})
	limiter.Reserve(off, 1).Settle(100)
	unlimited := limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.Unlimited()})
	limiter.Reserve(unlimited, 1).Settle(math.MaxInt)
	require.True(t, unlimited.Take(math.MaxInt).OK)
}

// A debt outlives all that happens to a bucket, but a Forget. It is no sign of a new clock.
func TestADebtIsNotForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := perMinute(60)
		limiter.Reserve(b, 1).Settle(600)
		require.False(t, b.Take(1).OK)
		require.InDelta(t, -540, b.Tokens(), 1e-6)
		require.NoError(t, b.SetRate(limiter.PerSecond(10)))
		require.InDelta(t, -540, b.Tokens(), 1e-6)
		require.NoError(t, b.SetBurst(5))
		require.InDelta(t, -540, b.Tokens(), 1e-6)
		b.Hold(time.Second)
		require.Equal(t, 54*time.Second+100*ms, b.Take(1).RetryAfter)
		time.Sleep(54*time.Second + 100*ms - 1)
		require.False(t, b.Take(1).OK)
		time.Sleep(time.Nanosecond)
		require.True(t, b.Take(1).OK)

		b = perMinute(60)
		r := b.Reserve(60, 0)
		late := b.Reserve(60, time.Minute)
		require.Equal(t, time.Minute, late.Delay)
		r.Settle(120)
		require.InDelta(t, -120, b.Tokens(), 1e-6)
		late.Settle(0)
		require.InDelta(t, -60, b.Tokens(), 1e-6, "what is not promised to others comes back")
	})
}

// A bucket that was used in another clock starts again, as one without a debt does.
func TestADebtEndsWithItsClock(t *testing.T) {
	b := perMinute(60)
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Hour)
		limiter.Reserve(b, 1).Settle(600)
		require.False(t, b.Take(1).OK)
	})
	synctest.Test(t, func(t *testing.T) {
		require.True(t, b.Take(60).OK)
		limiter.Reserve(b, 1).Settle(1)
	})
}

// A reservation of later tokens that costs nothing is cancelled: all of its tokens come back, even
// after a change.
func TestSettleAReservationOfLaterTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := perMinute(60)
		require.True(t, b.Take(60).OK)
		r := b.Reserve(30, time.Minute)
		require.Equal(t, 30*time.Second, r.Delay)
		require.NoError(t, b.SetRate(limiter.PerMinute(30)))
		r.Settle(0)
		require.InDelta(t, 0, b.Tokens(), 1e-6)
		r = b.Reserve(30, time.Minute)
		r.Settle(50)
		require.InDelta(t, -50, b.Tokens(), 1e-6)
	})
}

// Also in a log, whose tokens are dropped for those of refused requests.
func TestRefusedTokensInALogWithADebt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := limiter.NewSlidingLog(limiter.WindowConfig{Limit: 10, Window: time.Minute, CountRefused: true})
		first, second := limiter.Reserve(l, 8), limiter.Reserve(l, 2)
		second.Settle(92)
		time.Sleep(time.Second)
		require.False(t, l.Take(10).OK)
		time.Sleep(time.Second)
		first.Settle(0)
		require.False(t, l.Take(1).OK)
		time.Sleep(58 * time.Second)
		require.True(t, l.Take(10).OK)
	})
}

func TestHugeDebtsInOneWindowAfterTheOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := limiter.WindowConfig{Limit: 10, Window: time.Minute}
		for _, l := range []limiter.Limiter{limiter.NewSlidingLog(c), limiter.NewSlidingWindow(c)} {
			for range 20 {
				limiter.Reserve(l, 1).Settle(math.MaxInt)
				time.Sleep(66 * time.Second)
				limiter.Reserve(l, 10).Refund(10)
				require.True(t, l.Take(1).OK)
				require.True(t, l.Take(9).OK)
				require.Positive(t, l.Take(1).RetryAfter)
				time.Sleep(66 * time.Second)
			}
		}
	})
}

// A reservation of nothing is a request like others, and so is one whose tokens were given back.
func TestSettleAReservationOfNoTokens(t *testing.T) {
	g := keysPerMinute(60, 10, false)
	for name, l := range map[string]limiter.Limiter{
		"bucket": perMinute(60), "key": g.Get("a"), "joint": limiter.NewJoint("", perMinute(60), g.Get("b")),
		"joint in a joint": limiter.NewJoint("", limiter.NewJoint("", perMinute(60))),
		"per request":      limiter.NewJoint("", limiter.PerRequest(perMinute(5)), perMinute(60)),
	} {
		limiter.Reserve(l, 0).Settle(20)
		require.Equal(t, 40, l.Take(0).Remaining, name)
		r, err := limiter.WaitReserve(t.Context(), l, 0)
		require.NoError(t, err)
		r.Settle(10)
		require.Equal(t, 30, l.Take(0).Remaining, name)
		r = limiter.Reserve(l, 10)
		r.Refund(10)
		r.Settle(5)
		require.Equal(t, 25, l.Take(0).Remaining, name)
	}
}

// A limiter of a Joint that has taken nothing, because it is a shadow, is not charged.
func TestSettleInAJointWithAShadow(t *testing.T) {
	shadow := limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerMinute(5), Burst: 5, Name: "shadow", Shadow: true})
	for _, l := range []limiter.Limiter{shadow, limiter.NewJoint("", shadow)} {
		r, err := limiter.WaitReserve(t.Context(), l, 10)
		require.NoError(t, err)
		r.Settle(20)
		require.Equal(t, 5, shadow.Take(0).Remaining)
	}
	l := limiter.NewJoint("", shadow, perMinute(60))
	limiter.Reserve(l, 10).Settle(20)
	require.Equal(t, 5, shadow.Take(0).Remaining)
	limiter.Reserve(l, 5).Settle(20)
	require.InDelta(t, -15, shadow.Tokens(), 1e-3)
}

type embedded struct{ limiter.Keyed[string] }

// The debt of an evicted key is its own, also if a type of the user embeds it.
func TestDebtOfAnEmbeddedKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := keysPerMinute(60, 1, true)
		r := limiter.Reserve(embedded{g.Get("a")}, 10)
		time.Sleep(12 * time.Second)
		require.True(t, g.Get("b").Take(60).OK)
		r.Settle(3600)
		require.True(t, g.Get("c").Take(1).OK)
		require.False(t, g.Get("a").Take(1).OK)
	})
}

// A refused request that counts does not make a debt smaller.
func TestRefusedTokensInAWindowWithADebt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := limiter.NewSlidingWindow(limiter.WindowConfig{Limit: 10, Window: time.Second, CountRefused: true})
		first, second := limiter.Reserve(l, 5), limiter.Reserve(l, 5)
		first.Settle(35)
		require.False(t, l.Take(10).OK)
		second.Refund(5)
		require.False(t, l.Take(1).OK)
	})
}

func TestADebtForEver(t *testing.T) {
	for _, n := range []int{math.MaxInt, math.MaxInt / 2, math.MaxInt32} {
		b := limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.Per(1, 24*time.Hour)})
		k := limiter.NewGroup(limiter.GroupConfig[int]{Rate: limiter.Per(1, 24*time.Hour)}).Get(1)
		l := limiter.NewLeakyBucket(limiter.LeakyBucketConfig{Rate: limiter.Per(1, 24*time.Hour)})
		f := limiter.NewFixedWindow(limiter.WindowConfig{Limit: 1, Window: 365 * 24 * time.Hour})
		for _, l := range []limiter.Limiter{b, k, l, f} {
			limiter.Reserve(l, 1).Settle(n)
			r := l.Take(1)
			require.False(t, r.OK)
			require.Equal(t, limiter.Never, r.RetryAfter)
			require.Zero(t, r.Remaining)
		}
		s := limiter.NewSlidingLog(limiter.WindowConfig{Limit: 20, Window: time.Hour})
		var reservations []*limiter.Reservation
		for range 20 {
			reservations = append(reservations, limiter.Reserve(s, 1))
		}
		for _, r := range reservations {
			r.Settle(n)
			require.Zero(t, s.Take(0).Remaining)
		}
		require.InDelta(t, time.Hour, s.Take(1).RetryAfter, float64(time.Minute))
	}
}

// Each key has its own debt. A key that has left a full group comes back for its debt, beyond
// MaxKeys, and stays until the debt is paid.
func TestDebtOfAKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := keysPerMinute(60, 1, false)
		r := limiter.Reserve(g.Get("a"), 10)
		require.True(t, g.Get("a").Take(1).OK)
		time.Sleep(12 * time.Second)
		busy := limiter.Reserve(g.Get("b"), 60) // in the place of a
		require.True(t, busy.OK)
		require.True(t, g.Get("a").Take(1).NoRoom)
		r.Settle(10 + 300)
		require.Equal(t, 2, g.Len())
		require.Equal(t, 241*time.Second, g.Get("a").Take(1).RetryAfter)
		require.True(t, g.Get("c").Take(1).NoRoom)
		busy.Settle(30)
		require.Equal(t, 30, g.Get("b").Take(0).Remaining)
		time.Sleep(240 * time.Second)
		require.Equal(t, time.Second, g.Get("a").Take(1).RetryAfter)
		require.True(t, g.Forget("a"))
		require.True(t, g.Get("a").Take(1).OK)
	})
}

func TestDebtOfAKeyThatIsHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := keysPerMinute(60, 10, false)
		r := limiter.Reserve(g.Get("a"), 1)
		time.Sleep(2 * time.Second)
		g.Get("a").Hold(10 * time.Second) // then it has one token
		r.Settle(1 + 100)
		require.Equal(t, 110*time.Second, g.Get("a").Take(1).RetryAfter)
		time.Sleep(110 * time.Second)
		require.True(t, g.Get("a").Take(1).OK)
		require.False(t, g.Get("a").Take(1).OK)
	})
}

func TestDebtOfAKeyWithoutRoomThatWasHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := keysPerMinute(60, 1, false)
		require.True(t, g.Get("b").Take(60).OK)
		g.Get("a").Hold(time.Second)
		time.Sleep(time.Second)
		r := limiter.Reserve(g.Get("a"), 1)
		require.True(t, r.OK, "by the bucket of its hold")
		r.Settle(11)
		require.Equal(t, 11*time.Second, g.Get("a").Take(1).RetryAfter)
	})
}

// A call that waits for its reservation is delayed by the debt of another.
func TestWaitReserve(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := perMinute(60)
		first, err := limiter.WaitReserve(t.Context(), b, 60)
		require.NoError(t, err)
		require.True(t, first.OK)
		began := time.Now()
		time.AfterFunc(500*ms, func() { first.Settle(90) })
		second, err := limiter.WaitReserve(t.Context(), b, 10)
		require.NoError(t, err)
		require.Equal(t, 40*time.Second, time.Since(began))
		second.Settle(0)
		require.Equal(t, 10, b.Take(0).Remaining)

		_, err = limiter.WaitReserve(t.Context(), b, 61)
		require.ErrorIs(t, err, limiter.ErrLimited)
		_, err = limiter.WaitReserve(t.Context(), takeOnly{b}, 11)
		require.ErrorIs(t, err, limiter.ErrLimited)
		third, err := limiter.WaitReserve(t.Context(), takeOnly{b}, 10)
		require.NoError(t, err)
		require.True(t, third.OK)
	})
}

// takeOnly is a limiter of another package.
type takeOnly struct{ b *limiter.TokenBucket }

func (l takeOnly) Take(n int) limiter.Result { return l.b.Take(n) }

type charging struct {
	takeOnly
	charged *int
}

func (l charging) Charge(n int) { *l.charged += n }

func TestSettleALimiterOfAnotherPackage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := perMinute(60)
		limiter.Reserve(takeOnly{b}, 10).Settle(30)
		require.Equal(t, 30, b.Take(0).Remaining)
		limiter.Reserve(takeOnly{b}, 10).Settle(100)
		require.Zero(t, b.Take(0).Remaining, "as many as there are")
		b = perMinute(60)
		var charged int
		limiter.Reserve(charging{takeOnly{b}, &charged}, 10).Settle(100)
		require.Equal(t, 90, charged)
	})
}

// A waiter learns at once what a reservation has not used, also of a limiter of another package.
func TestSettleWakesTheWaitersOfAJoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var free atomic.Bool
		var l limiterFunc = func(int) limiter.Result {
			return limiter.Result{OK: free.Load(), Limit: 10, RetryAfter: time.Hour}
		}
		free.Store(true)
		j := limiter.NewJoint("", l, l)
		r := limiter.Reserve(j, 1)
		free.Store(false)
		began := time.Now()
		time.AfterFunc(time.Second, func() {
			free.Store(true)
			r.Settle(0)
		})
		require.NoError(t, j.Wait(t.Context(), 1))
		require.Equal(t, time.Second, time.Since(began))
	})
}

type limiterFunc func(n int) limiter.Result

func (f limiterFunc) Take(n int) limiter.Result { return f(n) }

func TestSettleAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := perMinute(60)
		lost := limiter.Reserve(b, 30)
		lost.SettleAfter(time.Hour, 0) // replaced
		lost.SettleAfter(10*time.Second, 50)
		known := limiter.Reserve(b, 30)
		known.SettleAfter(10*time.Second, 1000)
		time.Sleep(10*time.Second - 1)
		known.Settle(30)
		require.Equal(t, 9, b.Take(0).Remaining)
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		require.InDelta(t, -10, b.Tokens(), 1e-6)
		lost.Settle(0)
		lost.Refund(30)
		lost.SettleAfter(0, 0)
		time.Sleep(2 * time.Hour)
		require.Equal(t, 60, b.Take(0).Remaining)
		limiter.Reserve(b, 61).SettleAfter(0, 100) // was refused
		time.Sleep(time.Nanosecond)
		require.Equal(t, 60, b.Take(0).Remaining)
	})
}

// A deadline lives on after a Refund, and settles what the Refund has left.
func TestRefundBeforeADeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := perMinute(60)
		r := limiter.Reserve(b, 60)
		r.SettleAfter(10*time.Second, 0)
		time.Sleep(5 * time.Second)
		r.Refund(20)
		require.Equal(t, 25, b.Take(0).Remaining)
		time.Sleep(5*time.Second - time.Nanosecond)
		require.Equal(t, 29, b.Take(0).Remaining)
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		require.Equal(t, 60, b.Take(0).Remaining)
	})
}

// callsBack is a limiter of a user that uses its own reservation when it is charged.
type callsBack struct {
	takeOnly
	r       *limiter.Reservation
	charged int
}

func (l *callsBack) Charge(int) {
	l.charged++
	l.r.Settle(1)
	l.r.Refund(1)
	l.r.SettleAfter(time.Second, 1)
}

func TestALimiterThatCallsBackWhileItIsCharged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &callsBack{takeOnly: takeOnly{perMinute(60)}}
		l.r = limiter.Reserve(l, 1)
		l.r.Settle(5)
		l.r = limiter.Reserve(l, 1)
		l.r.SettleAfter(time.Second, 5)
		l.r.Settle(5)
		l.r = limiter.Reserve(l, 1)
		l.r.SettleAfter(time.Second, 5)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		require.Equal(t, 3, l.charged)
	})
}

// 60 requests and 10,000 tokens per minute.
func TestPerRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		requests, tokens := perMinute(60), perMinute(10_000)
		model := limiter.NewJoint("model", limiter.PerRequest(requests), tokens)
		r := limiter.Reserve(model, 3000)
		require.True(t, r.OK)
		require.Equal(t, 10_000, r.Limit)
		require.Equal(t, 7000, r.Remaining)
		require.Equal(t, 59, requests.Take(0).Remaining)
		r.Refund(1000)
		require.Equal(t, 59, requests.Take(0).Remaining, "the request is made")
		require.Equal(t, 8000, tokens.Take(0).Remaining)
		r.Refund(2000)
		require.Equal(t, 60, requests.Take(0).Remaining, "the request was not made")

		limiter.Reserve(model, 3000).Settle(0)
		require.Equal(t, 59, requests.Take(0).Remaining, "it was made and cost nothing")
		limiter.Reserve(model, 1000).Settle(10_000)
		require.Zero(t, tokens.Take(0).Remaining)
		require.Equal(t, 58, requests.Take(0).Remaining)
		time.Sleep(time.Minute)
		for range 60 {
			require.True(t, model.Take(1).OK)
		}
		refused := model.Take(1)
		require.Equal(t, time.Second, refused.RetryAfter)
		require.Zero(t, refused.Remaining)
		require.Equal(t, 10_000, refused.Limit)
		require.Equal(t, limiter.Never, model.Take(10_001).RetryAfter)
		require.Equal(t, limiter.Never, model.Take(-1).RetryAfter)

		errs := make(chan error, 1)
		began := time.Now()
		require.NoError(t, model.Wait(t.Context(), 5000))
		require.Equal(t, time.Second, time.Since(began))
		r, err := limiter.WaitReserve(t.Context(), model, 4000)
		require.NoError(t, err)
		require.Equal(t, 2*time.Second, time.Since(began))
		r.Refund(4000)
		require.Equal(t, 1, requests.Take(0).Remaining)

		go func() { errs <- model.Wait(t.Context(), 9999) }()
		synctest.Wait()
		behind := model.Take(1).RetryAfter // one request is ahead, not 9,999
		require.Greater(t, behind, 20*time.Second)
		require.Less(t, behind, time.Minute)
		time.Sleep(time.Minute)
		require.NoError(t, <-errs)

		alone := limiter.PerRequest(requests)
		for range 60 {
			alone.Take(1000)
		}
		require.False(t, alone.Take(1000).OK)
		time.Sleep(time.Second)
		require.True(t, alone.Take(1000).OK)
		require.False(t, alone.Take(1000).OK)
		require.Panics(t, func() { limiter.PerRequest(nil) })
	})
}

// A LeakyBucket has all tokens or none, so none is near the limit, also for each request.
func TestPerRequestOfALeakyBucket(t *testing.T) {
	requests := limiter.NewLeakyBucket(limiter.LeakyBucketConfig{Rate: limiter.PerMinute(60)})
	model := limiter.NewJoint("model", limiter.PerRequest(requests), perMinute(100))
	require.True(t, model.Take(100).OK)
	require.Zero(t, model.Stats().Near)
}

// A NaN is never found again, so it is not stored for its debt.
func TestDebtOfANaN(t *testing.T) {
	g := limiter.NewGroup(limiter.GroupConfig[float64]{Rate: limiter.PerMinute(60), MaxKeys: 1})
	limiter.Reserve(g.Get(math.NaN()), 0).Settle(600)
	require.Zero(t, g.Len())
}

func TestPerRequestOfAKeyWithoutRoom(t *testing.T) {
	g := keysPerMinute(60, 1, false)
	require.True(t, g.Get("a").Take(1).OK)
	j := limiter.NewJoint("", limiter.PerRequest(g.Get("b")), perMinute(600))
	require.True(t, j.Take(100).NoRoom)
	err := j.Wait(t.Context(), 100)
	var limited *limiter.LimitedError
	require.ErrorAs(t, err, &limited)
	require.Equal(t, limiter.NoRoom, limited.Reason)
	require.Equal(t, 1, limited.MaxKeys)
}

// settledCall is a call of the reference model: what it has used counts from its beginning.
type settledCall struct {
	began, ended   time.Duration
	estimate, used int
}

// In any span between the beginnings of two calls, what the calls that began in it have used is at
// most what the limit allows, and what those still running at its end used beyond their estimates.
func TestWhatIsUsedInAnySpanIsBounded(t *testing.T) {
	const burst = 20
	const interval = 50 * ms
	for seed := range uint64(testenv.Repeat(200, 20)) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 44))
			config := limiter.TokenBucketConfig{Rate: limiter.Per(1, interval), Burst: burst}
			var l limiter.Limiter = limiter.NewTokenBucket(config)
			switch seed % 3 {
			case 1:
				l = limiter.NewGroup(limiter.GroupConfig[string]{Rate: config.Rate, Burst: burst}).Get("key")
			case 2:
				l = limiter.NewJoint("", limiter.PerRequest(perMinute(1_000_000)), l)
			}
			start := time.Now()
			var mu sync.Mutex
			var calls []*settledCall
			var all sync.WaitGroup
			for range 200 {
				time.Sleep(time.Duration(random.ExpFloat64() * float64(random.IntN(8)) * float64(interval)))
				estimate, used := 1+random.IntN(10), random.IntN(15)
				if random.IntN(10) == 0 {
					used = random.IntN(100)
				}
				length := time.Duration(random.IntN(3000)) * ms / 3
				mayWait := random.IntN(2) == 0
				all.Go(func() {
					r := limiter.Reserve(l, estimate)
					if !r.OK && mayWait {
						var err error
						r, err = limiter.WaitReserve(t.Context(), l, estimate)
						require.NoError(t, err)
					}
					if !r.OK {
						return
					}
					c := &settledCall{began: time.Since(start), estimate: estimate, used: used}
					mu.Lock()
					calls = append(calls, c)
					mu.Unlock()
					switch length % 4 {
					case 0:
						r.SettleAfter(length, used)
						time.Sleep(length + 1)
					default:
						time.Sleep(length)
						r.Settle(used)
					}
					c.ended = time.Since(start)
				})
			}
			all.Wait()
			for i, first := range calls {
				used := 0
				for j := i; j < len(calls); j++ {
					last := calls[j]
					used += last.used
					bound := burst + float64(last.began-first.began+2)/float64(interval)
					for _, c := range calls[i : j+1] {
						if c.ended >= last.began {
							bound += float64(max(c.used-c.estimate, 0))
						}
					}
					require.LessOrEqual(t, float64(used), bound+1e-6, "seed %d, from %v to %v", seed, first, last)
				}
			}
		})
	}
}

// Whatever calls do at the same time, all that was used is charged, once.
func TestSettleByManyGoroutines(t *testing.T) {
	const workers, calls, burst = 8, 250, 100_000
	slow := limiter.Per(1, 365*24*time.Hour)
	b := limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: slow, Burst: burst})
	k := limiter.NewGroup(limiter.GroupConfig[int]{Rate: slow, Burst: burst}).Get(1)
	window := limiter.NewSlidingLog(limiter.WindowConfig{Limit: burst, Window: time.Hour})
	j := limiter.NewJoint("", b, k, window)
	var all sync.WaitGroup
	used := 0
	for worker := range workers {
		random := rand.New(rand.NewPCG(uint64(worker), 4))
		for n := range calls {
			cost := random.IntN(20)
			used += cost
			all.Go(func() {
				r := limiter.Reserve(j, 3)
				if n%3 == 0 {
					r.SettleAfter(time.Duration(n%7)*time.Microsecond, cost)
				}
				r.Settle(cost)
				r.Settle(burst)
			})
		}
	}
	all.Wait()
	for _, l := range []limiter.Limiter{b, k, window} {
		require.Equal(t, burst-used, l.Take(0).Remaining, "%T", l)
	}
}
