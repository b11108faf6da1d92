package fleet_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/fleet"
	"github.com/weir-go/weir/fleet/internal/redistest"
	"github.com/weir-go/weir/fleet/rediscell"
	"github.com/weir-go/weir/limiter"
)

const (
	year     = 365 * 24 * time.Hour
	perToken = 20 * time.Minute
)

// yearly lists limits of 1,000,000 tokens, of which hardly any comes back during a test.
var yearly = map[string]fleet.Limit{
	"bucket":          fleet.TokenBucket{Rate: limiter.Per(1, perToken), Burst: 1_000_000},
	"bucket of parts": fleet.TokenBucket{Rate: limiter.Per(1, perToken+1), Burst: 1_000_000},
	"fixed":           fleet.FixedWindow{Limit: 1_000_000, Window: year},
	"sliding":         fleet.SlidingWindow{Limit: 1_000_000, Window: year},
	"log":             fleet.SlidingLog{Limit: 1_000_000, Window: year},
	"quota":           dailyQuota(1_000_000),
	"throttle":        rediscell.Limit(999_999, 1, perToken),
}

func remaining(t *testing.T, l *fleet.Limiter, key string) int {
	t.Helper()
	r, err := l.Take(t.Context(), key, 0)
	require.NoError(t, err)
	return r.Remaining
}

// requireSettled requires that a number of tokens remain after reservations of 10 tokens that used
// others. A limit that refills may have given back a part of a token too few: what has returned by
// itself while the reservation was on its way.
func requireSettled(t *testing.T, l *fleet.Limiter, name, key string, used, want int) {
	t.Helper()
	left := remaining(t, l, key)
	if refills := slices.Contains([]string{"bucket", "bucket of parts", "throttle"}, name); refills && used < 10 && left == want-1 {
		return
	}
	require.Equal(t, want, left, "%s: %d", name, used)
}

func reserve(t *testing.T, l *fleet.Limiter, key string, n int) *fleet.Reservation {
	t.Helper()
	var r *fleet.Reservation
	requireSoon(t, func() (ok bool) { // the breaker may be open
		var err error
		r, err = l.Reserve(t.Context(), key, n)
		return err == nil && r.OK
	})
	return r
}

// A settlement whose reply is lost is sent again and counts once, in both directions.
func TestASettlementWhoseReplyIsLostCountsOnce(t *testing.T) {
	t.Parallel()
	p := redistest.NewProxy(t, sharedServer().Addr())
	l := linkWithin(t, &redis.Options{Addr: p.Addr()}, longTimeout)
	for name, limit := range yearly {
		b := newLimiter(l, newKey(), limit, errorOnOutage)
		for used, left := range map[int]int{50: 999_950, 3: 999_997} {
			key := newKey()
			r := reserve(t, b, key, 10)
			p.LoseReplies(1)
			require.NoError(t, r.Settle(t.Context(), used), name)
			requireSettled(t, b, name, key, used, left)

			r = reserve(t, b, key, 10)
			p.LoseReplies(2) // also that of the second try
			require.ErrorIs(t, r.Settle(t.Context(), used), fleet.ErrUnavailable, name)
			require.NoError(t, r.Refund(t.Context(), 10), name)
			require.NoError(t, r.Settle(t.Context(), used), name)
			require.NoError(t, r.Settle(t.Context(), used+1), name)
			requireSettled(t, b, name, key, used, 2*left-1_000_000)
		}
	}
}

// A settlement is sent again after a timeout, when the caller calls Settle again.
func TestASettlementAfterATimeout(t *testing.T) {
	t.Parallel()
	p := redistest.NewProxy(t, sharedServer().Addr())
	l := linkWithin(t, &redis.Options{Addr: p.Addr()}, 200*ms)
	b := newLimiter(l, newKey(), yearly["fixed"], errorOnOutage)
	r := reserve(t, b, "user", 10)
	p.Swallow(false, true)
	require.ErrorIs(t, r.Settle(t.Context(), 50), context.DeadlineExceeded)
	p.Swallow(false, false)
	p.Cut()
	requireSoon(t, func() bool { return r.Settle(t.Context(), 50) == nil })
	require.Equal(t, 999_950, remaining(t, b, "user"))
}

// Redis has forgotten a settlement after two minutes. Then nothing is given back any more, and a
// debt may be charged twice.
func TestASettlementThatRedisHasForgotten(t *testing.T) {
	p := redistest.NewProxy(t, sharedServer().Addr())
	l := linkWithin(t, &redis.Options{Addr: p.Addr()}, longTimeout)
	direct := newClient(t, sharedServer())
	for name, limit := range yearly {
		for used, left := range map[int]int{50: 999_910, 3: 999_997} {
			b, key := newLimiter(l, newKey(), limit, errorOnOutage), newKey()
			require.NoError(t, reserve(t, b, "other", 1).Settle(t.Context(), 2), "Redis knows the script from now on")
			r := reserve(t, b, key, 10)
			p.LoseReplies(2)
			require.Error(t, r.Settle(t.Context(), used), name)
			marks := direct.Keys(t.Context(), b.StateKeys(key)[0]+":settled:*").Val()
			require.Len(t, marks, 1, name)
			ttl := direct.PTTL(t.Context(), marks[0]).Val()
			require.True(t, ttl <= fleet.RememberedFor && ttl > fleet.RememberedFor-time.Minute, ttl)
			require.NoError(t, direct.Del(t.Context(), marks[0]).Err())
			r.SentEarlier(fleet.RememberedFor - longTimeout + ms)
			if err := r.Settle(t.Context(), used); used > 10 {
				require.NoError(t, err, name)
			} else {
				require.ErrorContains(t, err, "nothing is given back", name)
			}
			require.NoError(t, r.Settle(t.Context(), used), name)
			requireSettled(t, b, name, key, used, left)
		}
	}
}

// 2,000 settlements from eight processes at the same time count once each, although some replies
// are lost.
func TestSettlementsAtTheSameTimeCountOnceEach(t *testing.T) {
	t.Parallel()
	const workers, calls = 8, 250
	for name, limit := range yearly {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			key := newKey()
			var used, lost atomic.Int64
			var all sync.WaitGroup
			var last *fleet.Limiter
			for w := range workers {
				p := redistest.NewProxy(t, sharedServer().Addr())
				l := newLimiter(linkWithin(t, &redis.Options{Addr: p.Addr()}, longTimeout), key, limit, errorOnOutage)
				random := rand.New(rand.NewPCG(uint64(w), 3))
				all.Go(func() {
					for range calls {
						n := random.IntN(60)
						used.Add(int64(n))
						lost.Add(int64(settleOnce(t, l, p, n, max(random.IntN(12)-9, 0))))
					}
				})
				last = l
			}
			all.Wait()
			require.Greater(t, lost.Load(), int64(100))
			require.InDelta(t, 1_000_000-used.Load(), remaining(t, last, "user"), 2)
		})
	}
}

// settleOnce makes a call that has used n, and loses some replies to its settlement. It returns how
// many.
func settleOnce(t *testing.T, l *fleet.Limiter, p *redistest.Proxy, n, lose int) int {
	r, err := l.Reserve(t.Context(), "user", 20)
	if err != nil || !r.OK {
		t.Error(r, err)
		return 0
	}
	if n == 20 {
		lose = 0 // nothing is sent
	}
	p.LoseReplies(lose)
	for range 1000 {
		if err = r.Settle(t.Context(), n); err == nil {
			return lose
		}
		waitFor(ms)
	}
	t.Error(err)
	return 0
}
