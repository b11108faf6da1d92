package fleet_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/fleet"
	"github.com/weir-go/weir/fleet/internal/redistest"
	"github.com/weir-go/weir/internal/testenv"
	"github.com/weir-go/weir/limiter"
)

// The numbered scenarios for limiters on Redis. These are elsewhere:
//
//	56  TestEveryKeyExpires
//	57  TestSeveralLimitsInOneRoundTrip
//	58  TestAllKeysOfADecisionAreInOneSlot
//	61  the tests of internal/lease, and TestLeasesSaveRoundTripsAndKeepTheirBound
//	62  TestRefusalIsRepeatedWithoutAskingRedis
//	63  TestSlidingLogAsRedissonDocuments, TestAChangeOfTheRateKeepsWhatWasTaken, TestSetRateOverridesTheConfig
//	64  TestARefundIsTakenOutOfTheLog

func TestScenarioL53_TenASecond(t *testing.T) {
	l := connect(t)
	b := newLimiter(l, "ten", fleet.TokenBucket{Rate: limiter.PerSecond(10), Burst: 10}, errorOnOutage)
	take := func(n int, want limiter.Result) {
		t.Helper()
		r, err := b.TakeAt(t.Context(), testStart, "user", n)
		require.NoError(t, err)
		require.Equal(t, want, r.Result)
	}
	take(0, allowedResult(10, 10, 0))
	require.Zero(t, newClient(t, sharedServer()).Exists(t.Context(), b.StateKeys("user")...).Val(), "a request for 0 stores nothing")
	take(1, allowedResult(10, 9, 100*ms))
	require.NoError(t, b.Reset(t.Context(), "user"))
	take(1, allowedResult(10, 9, 100*ms))
	take(2, allowedResult(10, 7, 300*ms))
	take(7, allowedResult(10, 0, time.Second))
	take(1000, refusedResult(10, 0, limiter.Never, time.Second))
}

func TestScenarioL54_ClocksThatDiffer(t *testing.T) {
	for name, here := range ofEachKind(connect(t), "skewed", time.Hour) {
		there := ofEachKind(connect(t), "skewed", time.Hour)[name]
		allowed := 0
		for range 100 {
			for _, node := range []anyLimiter{here, there} { // no node's clock is sent
				r, err := node.Take(t.Context(), "user", 1)
				require.NoError(t, err)
				if r.OK {
					allowed++
				}
			}
		}
		require.Equal(t, 10, allowed, name)
	}
}

func TestScenarioL55_SlowRestartedForgetful(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	proxy := redistest.NewProxy(t, s.Addr())
	c := redis.NewClient(&redis.Options{Addr: proxy.Addr(), ContextTimeoutEnabled: true})
	defer func() { require.NoError(t, c.Close()) }()
	b := newLimiter(connectTo(t, c, fleet.LinkConfig{Timeout: longTimeout}), "slow", fleet.TokenBucket{Rate: limiter.Per(1, time.Hour), Burst: 10}, errorOnOutage)
	next := func(want int) {
		t.Helper()
		r, err := b.Take(t.Context(), "user", 1)
		require.NoError(t, err)
		require.Equal(t, want, r.Remaining)
	}
	next(9)
	proxy.Delay(500 * ms) // each way
	next(8)
	proxy.Delay(0)
	s.Do("SCRIPT", "FLUSH")
	next(7)
	s.Do("DEL", b.StateKeys("user")[0])
	next(9)
	s.Restart()
	proxy.Cut()
	require.Eventually(t, func() bool {
		r, err := b.Take(t.Context(), "user", 1)
		return err == nil && r.Remaining == 9
	}, longTimeout, 10*ms, "the first answer after a restart")
}

func TestScenarioL56_NoTimeToLiveIsZero(t *testing.T) {
	direct := newClient(t, sharedServer())
	for _, b := range []fleet.TokenBucket{{Rate: limiter.PerSecond(100), Burst: 10}, {Rate: limiter.Per(1, ms), Burst: 1}} {
		bucket := newLimiter(connect(t), newKey(), b, errorOnOutage)
		for range 50 {
			r, err := bucket.Take(t.Context(), "user", 1)
			require.NoError(t, err)
			left := direct.PTTL(t.Context(), bucket.StateKeys("user")[0]).Val()
			require.NotEqual(t, time.Duration(-1), left, "the key has no time to live")
			require.LessOrEqual(t, left, r.ResetAfter+time.Second)
		}
	}
}

// A server hangs: which policy decides, how long that takes, and what the server receives when it
// continues.
func TestScenarioL59_RedisHangs(t *testing.T) {
	t.Parallel()
	const timeout, failures = 100 * ms, 5
	for policy, want := range map[fleet.OnOutage]int{fleet.FailOpen: 100, fleet.FailClosed: 0, fleet.FailLocal: 5, fleet.FailError: 0} {
		t.Run(string(policy), func(t *testing.T) {
			t.Parallel()
			s := redistest.Start(t)
			l := connectTo(t, newClient(t, s), fleet.LinkConfig{Timeout: timeout, Breaker: breaker.Config{Cooldown: 2 * time.Second}})
			c := fleet.Config{OnOutage: policy}
			if policy == fleet.FailLocal {
				c.Share = 0.5
			}
			b := newLimiter(l, "hangs", fleet.TokenBucket{Rate: limiter.Per(1, time.Hour), Burst: 10}, c)
			_, err := b.Take(t.Context(), "other", 1)
			require.NoError(t, err)
			before := requestCount(s)
			s.Pause()
			allowed := 0
			for i := range 100 {
				start := testenv.Running()
				r, err := b.Take(t.Context(), "user", 1)
				require.Less(t, testenv.Running()-start, timeout+timeoutSlack)
				require.Equal(t, policy == fleet.FailError, err != nil)
				if err == nil {
					require.Equal(t, fleet.FromOutage, r.From)
				}
				if r.OK {
					allowed++
				}
				require.Equal(t, i >= failures-1, l.Breaker().Tripped(), "after %d calls", i+1)
			}
			require.Equal(t, want, allowed)
			s.Continue()
			require.Eventually(t, func() bool {
				r, err := b.Take(t.Context(), "user", 0)
				return err == nil && r.From == fleet.FromServer
			}, 30*time.Second, 10*ms)
			r, err := b.Take(t.Context(), "user", 0)
			require.NoError(t, err)
			require.GreaterOrEqual(t, r.Remaining, 10-failures-2, "grants during the outage are not charged later")
			require.LessOrEqual(t, requestCount(s)-before, failures+20)
		})
	}
}

func TestScenarioL60_TheAnswerComesTooLate(t *testing.T) {
	t.Parallel()
	for name := range ofEachKind(connect(t), "names", time.Hour) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := redistest.Start(t)
			proxy := redistest.NewProxy(t, s.Addr())
			c := redis.NewClient(&redis.Options{Addr: proxy.Addr(), ContextTimeoutEnabled: true, MaxRetries: 5})
			defer func() { require.NoError(t, c.Close()) }()
			b := ofEachKind(connectTo(t, c, fleet.LinkConfig{Timeout: time.Second}), "late", time.Hour)[name]
			_, err := b.Take(t.Context(), "user", 1)
			require.NoError(t, err)
			before := requestCount(s)
			proxy.Swallow(false, true)
			_, err = b.Take(t.Context(), "user", 1)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.ErrorIs(t, err, fleet.ErrUnavailable)
			proxy.Swallow(false, false)
			proxy.Cut()
			require.Equal(t, before+1, requestCount(s))
			var r fleet.Result
			require.Eventually(t, func() bool { r, err = b.Take(t.Context(), "user", 0); return err == nil }, longTimeout, 10*ms)
			require.Equal(t, 8, r.Remaining)
		})
	}
}

// A Ring distributes keys over servers that do not know each other. The server of a key decides
// about it.
func TestKeysOnTheServersOfARing(t *testing.T) {
	one, two := redistest.Start(t), redistest.Start(t)
	ring := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"one": one.Addr(), "two": two.Addr()}, ContextTimeoutEnabled: true})
	defer func() { require.NoError(t, ring.Close()) }()
	b := newLimiter(connectTo(t, ring, fleet.LinkConfig{Timeout: longTimeout}), "divided",
		fleet.TokenBucket{Rate: limiter.Per(1, time.Hour), Burst: 10}, fleet.Config{OnOutage: fleet.FailError, MaxDenied: fleet.Off})
	const keys, each, callers = 20, 10, 64
	var allowed [keys]atomic.Int64
	var g sync.WaitGroup
	for range callers {
		g.Go(func() {
			for i := range keys {
				r, err := b.Take(t.Context(), fmt.Sprint(i), each/2)
				if err != nil {
					t.Error(err)
				}
				if r.OK {
					allowed[i].Add(each / 2)
				}
			}
		})
	}
	g.Wait()
	for i := range allowed {
		require.EqualValues(t, each, allowed[i].Load(), "key %d", i)
	}
	require.Positive(t, requestCount(one))
	require.Positive(t, requestCount(two))
}
