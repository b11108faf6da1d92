package fleet_test

import (
	"context"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/fleet"
	"github.com/weir-go/weir/fleet/internal/redistest"
	"github.com/weir-go/weir/fleet/rediscell"
	"github.com/weir-go/weir/fleet/redisson"
	"github.com/weir-go/weir/limiter"
)

// Tokens of the policy are settled in its limit, and those of Redis in Redis.
func TestTokensAreSettledWhereTheyCameFrom(t *testing.T) {
	t.Parallel()
	for name, kind := range map[string]fleet.Limit{
		"bucket": perHour(10, 10), "fixed": fleet.FixedWindow{Limit: 10, Window: year}, "log": fleet.SlidingLog{Limit: 10, Window: year},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := redistest.NewProxy(t, sharedServer().Addr())
			l := linkWithin(t, &redis.Options{Addr: p.Addr()}, longTimeout)
			b := newLimiter(l, newKey(), kind, fleet.Config{OnOutage: fleet.FailLocal, Share: 1, MaxDenied: limiter.Off})
			take := func(from string, n int) (ok bool) {
				requireSoon(t, func() bool {
					r, err := b.Reserve(t.Context(), "user", n)
					require.NoError(t, err)
					if ok = r.OK; r.From != from {
						require.NoError(t, r.Refund(t.Context(), n))
					}
					return r.From == from
				})
				return ok
			}
			reserve := func(n int) *fleet.Reservation {
				r, err := b.Reserve(t.Context(), "user", n)
				require.NoError(t, err)
				require.True(t, r.OK)
				return r
			}
			early := reserve(5)
			p.Refuse()
			require.True(t, take(fleet.FromOutage, 0))
			local, more := reserve(3), reserve(3)
			require.NoError(t, local.Settle(t.Context(), 1), "settled in this process")
			if name == "bucket" { // less than 6 by what returned on the way to Redis
				require.True(t, take(fleet.FromOutage, 5))
				require.False(t, take(fleet.FromOutage, 2))
			} else {
				require.True(t, take(fleet.FromOutage, 6))
				require.False(t, take(fleet.FromOutage, 1))
			}
			require.NoError(t, more.Settle(t.Context(), 30))
			require.NoError(t, more.Settle(t.Context(), 0))
			require.False(t, take(fleet.FromOutage, 1))
			require.ErrorIs(t, early.Settle(t.Context(), 20), fleet.ErrUnavailable)
			p.Accept()
			require.True(t, take(fleet.FromServer, 1), "Redis knows nothing of the policy's debt")
			require.NoError(t, early.Settle(t.Context(), 20))
			require.False(t, take(fleet.FromServer, 1))
		})
	}
}

// Charge has no reservation, so the policy takes the debt while Redis is unavailable, if it counts.
func TestChargeWhileRedisIsUnavailable(t *testing.T) {
	_, l := unavailableLink(t)
	for policy, c := range map[fleet.OnOutage]fleet.Config{
		fleet.FailLocal: {Share: 1}, fleet.FailOpen: {}, fleet.FailClosed: {}, fleet.FailError: {},
	} {
		c.OnOutage = policy
		b := newLimiter(l, "charged", perHour(10, 10), c)
		err := charge(t.Context(), b.Get("user"), 12)
		if policy != fleet.FailLocal {
			require.ErrorIs(t, err, fleet.ErrUnavailable, policy)
			continue
		}
		require.NoError(t, err)
		r, err := b.Take(t.Context(), "user", 1)
		require.NoError(t, err)
		require.False(t, r.OK)
		require.InDelta(t, 18*time.Minute, r.RetryAfter, float64(time.Second))
	}
}

func charge(ctx context.Context, r limiter.Remote, n int) error {
	return r.(interface {
		Charge(ctx context.Context, n int) error
	}).Charge(ctx, n)
}

func TestCharge(t *testing.T) {
	l := connect(t)
	for name, c := range settled {
		b := newLimiters(l, "charge "+name, errorOnOutage, c.limits...)
		require.NoError(t, charge(t.Context(), b.Get("user"), 0))
		require.NoError(t, charge(t.Context(), b.Get("user"), -5))
		require.NoError(t, charge(t.Context(), b.Get("user"), 20))
		require.InDelta(t, 40, remaining(t, b, "user"), 1, name)
		require.NoError(t, charge(t.Context(), b.Get("user"), 20))
		require.InDelta(t, 20, remaining(t, b, "user"), 1, name)
		require.NoError(t, charge(t.Context(), b.Get("user"), 50))
		r, err := b.Take(t.Context(), "user", 1)
		require.NoError(t, err)
		require.False(t, r.OK, name)
		if math.MaxInt > math.MaxInt32 { // otherwise every int can be charged
			require.ErrorContains(t, charge(t.Context(), b.Get("user"), math.MaxInt), "cannot charge", name)
		}
		require.ErrorIs(t, charge(gone(t), b.Get("user"), 1), context.Canceled, name)
	}
}

// A debt is refused by Redis, and tokens that come back end the refusals of this process.
func TestADebtAndRefusalsThatAreRemembered(t *testing.T) {
	l := connect(t)
	for name, limit := range yearly {
		key := newKey()
		b, other := newLimiter(l, key, limit, errorOnOutage), newLimiter(l, key, limit, errorOnOutage)
		r := reserve(t, b, "user", 500_000)
		require.NoError(t, reserve(t, other, "user", 10).Settle(t.Context(), 600_000))
		requireTake(t, refused, b.Take, "user", 1)
		requireTake(t, denied, b.Take, "user", 1)
		require.NoError(t, r.Settle(t.Context(), 100_000), name)
		requireTake(t, taken, b.Take, "user", 1)
		waits := make(chan error, 1)
		r = reserve(t, b, "user", 100_000)
		go func() { waits <- b.Wait(t.Context(), "user", 250_000) }()
		require.Never(t, func() bool { return len(waits) > 0 }, 50*ms, 10*ms, name)
		require.NoError(t, r.Settle(t.Context(), 0))
		require.NoError(t, <-waits, name)
	}
}

// Tokens of a lease are settled at the server.
func TestTokensOfALeaseAreSettled(t *testing.T) {
	l := connect(t)
	for name, limit := range yearly {
		key := newKey()
		leased, plain := newLimiter(l, key, limit, fleet.Config{OnOutage: fleet.FailError, MaxLease: 100}), newLimiter(l, key, limit, errorOnOutage)
		used := 0
		for fromLease := 0; fromLease < 40; {
			r, err := leased.Reserve(t.Context(), "user", 3)
			require.NoError(t, err)
			require.True(t, r.OK)
			if r.From == fleet.FromLease {
				fromLease++
			}
			n := (fromLease * 7) % 20
			require.NoError(t, r.Settle(t.Context(), n))
			require.NoError(t, r.Refund(t.Context(), 3))
			used += n
		}
		require.NoError(t, leased.Close(t.Context()))
		require.InDelta(t, 1_000_000-used, remaining(t, plain, "user"), 2, name)
	}
}

// A server is away during a settlement. The next Settle asks it alone.
func TestSettleAtSeveralServers(t *testing.T) {
	t.Parallel()
	two := newTwoServers(t, "settle two", 2*time.Second)
	b := newLimiters(two.link, "settle two", fleet.Config{OnOutage: fleet.FailError, MaxDenied: limiter.Off},
		fleet.FixedWindow{Limit: 100, Window: year}, fleet.Shared{Limit: fleet.FixedWindow{Limit: 200, Window: year}})
	left := func() [2]int {
		each, err := b.TakeEach(t.Context(), two.key, 0)
		require.NoError(t, err)
		return [2]int{each[0].Remaining, each[1].Remaining}
	}
	for i, used := range []int{30, 4} {
		r := reserve(t, b, two.key, 10)
		stopped := []*redistest.Server{two.other, two.everybody}[i]
		stopped.Pause()
		require.ErrorIs(t, r.Settle(t.Context(), used), fleet.ErrUnavailable)
		stopped.Continue()
		requireSoon(t, func() bool { return r.Settle(t.Context(), used) == nil })
		require.NoError(t, r.Settle(t.Context(), used))
	}
	require.Equal(t, [2]int{66, 166}, left())
}

// A foreign value gets an error, and the reservation can still be settled.
func TestSettleWithAForeignValue(t *testing.T) {
	l, direct := connect(t), newClient(t, sharedServer())
	for name, c := range settled {
		b := newLimiters(l, "foreign "+name, errorOnOutage, c.limits...)
		r := reserve(t, b, "user", 10)
		require.NoError(t, direct.Set(t.Context(), b.StateKeys("user")[0], "n0:0:0", time.Hour).Err())
		err := r.Settle(t.Context(), 50)
		require.ErrorIs(t, err, fleet.ErrForeign, name)
		if name != "log" {
			require.ErrorContains(t, err, "written by a limit of kind sliding-log, and this one is a", name)
		}
		require.NoError(t, b.Reset(t.Context(), "user"))
		require.NoError(t, r.Settle(t.Context(), 50))
		require.InDelta(t, 20, remaining(t, b, "user"), 1, name)
	}
}

// A rate that redisson.SetRate has set is that of the debt too.
func TestSettleALogWhoseRateWasSet(t *testing.T) {
	b := newLimiter(connect(t), "set rate", redisson.PerClient(fleet.SlidingLog{Limit: 10, Window: year}, "c"), errorOnOutage)
	require.NoError(t, redisson.SetRate(t.Context(), b, "user", 50, year))
	require.NoError(t, reserve(t, b, "user", 10).Settle(t.Context(), 40))
	require.Equal(t, 10, remaining(t, b, "user"))
	require.NoError(t, redisson.SetRate(t.Context(), b, "user", 20, year))
	requireTake(t, refused, b.Take, "user", 0)
}

// A settlement costs one script, and its key is in the slot of the other keys. With no difference
// nothing is sent.
func TestASettlementIsOneScript(t *testing.T) {
	s := redistest.Start(t)
	direct := newClient(t, s)
	l := connectTo(t, newClient(t, s), fleet.LinkConfig{Timeout: longTimeout})
	for name, c := range settled {
		b := newLimiters(l, "one "+name, errorOnOutage, c.limits...)
		require.NoError(t, reserve(t, b, "warm", 1).Settle(t.Context(), 2))
		for used, scripts := range map[int]int{10: 0, 20: 1, 0: 1} {
			r := reserve(t, b, "user", 10)
			before := requestCount(s)
			require.NoError(t, r.Settle(t.Context(), used))
			require.NoError(t, r.Settle(t.Context(), used))
			require.Equal(t, before+scripts, requestCount(s), "%s: %d", name, used)
		}
		slots := map[int64]bool{}
		for _, key := range append(direct.Keys(t.Context(), "*one "+name+":{user}:settled:*").Val(), b.StateKeys("user")...) {
			slots[direct.ClusterKeySlot(t.Context(), key).Val()] = true
		}
		require.Len(t, slots, 1, name)
	}
}

// docs/redis.md states the bytes per settlement.
func TestMemoryOfASettlementInRedis(t *testing.T) {
	t.Parallel()
	direct := newClient(t, redistest.Start(t))
	l := connectTo(t, direct, fleet.LinkConfig{Timeout: longTimeout})
	for name, limit := range map[string]fleet.Limit{"bucket": yearly["bucket"], "fixed": yearly["fixed"], "throttle": rediscell.Limit(999_999, 1, time.Minute)} {
		b := newLimiter(l, "users", limit, errorOnOutage)
		require.NoError(t, direct.FlushAll(t.Context()).Err())
		require.NoError(t, reserve(t, b, fmt.Sprintf("%016d", 0), 1).Settle(t.Context(), 2))
		keys, err := direct.Keys(t.Context(), "*:settled:*").Result()
		require.NoError(t, err)
		require.Len(t, keys, 1, name)
		each, err := direct.MemoryUsage(t.Context(), keys[0]).Result()
		require.NoError(t, err)
		t.Logf("%s: %d bytes per settlement", name, each)
		require.LessOrEqual(t, each, int64(250), name)
	}
}

// The policy has granted the tokens of one limit, and the server of the other is away during the
// settlement. The next Settle does not settle the policy's limit again.
func TestThePolicySettlesOnce(t *testing.T) {
	t.Parallel()
	two := newTwoServers(t, "settle policy", 500*ms)
	b := newLimiters(two.link, "settle policy", fleet.Config{OnOutage: fleet.FailLocal, Share: 1, MaxDenied: limiter.Off},
		fleet.FixedWindow{Limit: 100, Window: year}, fleet.Shared{Limit: fleet.FixedWindow{Limit: 200, Window: year}})
	left := func() (each []fleet.Result, remaining [2]int) {
		each, err := b.TakeEach(t.Context(), two.key, 0)
		require.NoError(t, err)
		return each, [2]int{each[0].Remaining, each[1].Remaining}
	}
	left() // the servers are known
	two.everybody.Pause()
	defer two.everybody.Continue()
	r := reserve(t, b, two.key, 10)
	two.other.Pause()
	require.ErrorIs(t, r.Settle(t.Context(), 30), fleet.ErrUnavailable)
	two.other.Continue()
	requireSoon(t, func() bool { return r.Settle(t.Context(), 30) == nil })
	each, remaining := left()
	require.Equal(t, [2]string{fleet.FromServer, fleet.FromOutage}, [2]string{each[0].From, each[1].From})
	require.Equal(t, [2]int{70, 170}, remaining)
}
