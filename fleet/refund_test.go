package fleet_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/fleet"
	"github.com/weir-go/weir/fleet/internal/redistest"
	"github.com/weir-go/weir/limiter"
)

// A refund of tokens that have returned by themselves would give back tokens of other requests.
func TestALateRefundGivesBackOnlyWhatStillCounts(t *testing.T) {
	l := connect(t)
	for name, limit := range tenPerSecond {
		t.Run(name, func(t *testing.T) {
			b := newLimiter(l, "late "+name, limit, fleet.Config{OnOutage: fleet.FailError, MaxDenied: limiter.Off})
			take := func(at time.Duration, n int) int {
				r, err := b.TakeAt(t.Context(), testStart.Add(at), "user", n)
				require.NoError(t, err)
				if !r.OK {
					return 0
				}
				return n
			}
			back := func(at, age time.Duration, n int) {
				require.NoError(t, b.GiveBackAged(t.Context(), testStart.Add(at), age, "user", n))
			}
			soon, late := 5*ms, 3*time.Second
			if name == "quota" {
				late = 25 * time.Hour // the next day
			}
			require.Equal(t, 10, take(0, 10))
			back(soon, soon, 10)
			require.GreaterOrEqual(t, take(soon, 9), 9, "tokens that still count are given back")
			require.Equal(t, 10, take(late, 10), "all tokens have returned by themselves")
			back(late, late-soon, 9)
			require.Zero(t, take(late, 1), "none of the ten was given back")
			back(late, 0, 1)
			require.Equal(t, 1, take(late, 1), "one was")
			require.Zero(t, take(late, 1))
		})
	}
}

func TestRefundMeasuresHowLongAgoItWas(t *testing.T) {
	b := newLimiter(connect(t), "ago", fleet.SlidingLog{Limit: 1, Window: time.Minute}, errorOnOutage)
	take := func() bool {
		r, err := b.Take(t.Context(), "user", 1)
		require.NoError(t, err)
		return r.OK
	}
	back := func(at time.Time) { require.NoError(t, b.Refund(t.Context(), at, "user", 1)) }
	require.True(t, take())
	back(time.Now().Add(-time.Minute))
	require.False(t, take())
	back(time.Now())
	require.True(t, take())
	back(time.Now().Add(time.Hour)) // a time to come is now
	require.True(t, take())
	back(time.Time{})
	require.False(t, take())
}

// Tokens of the policy return to the policy, whenever they do, and those of Redis to Redis.
func TestRefundedTokensReturnToWhereTheyCameFrom(t *testing.T) {
	t.Parallel()
	const limit = 10
	for name, kind := range map[string]fleet.Limit{
		"bucket": fleet.TokenBucket{Rate: limiter.Per(limit, time.Hour), Burst: limit},
		"fixed":  fleet.FixedWindow{Limit: limit, Window: time.Hour}, "log": fleet.SlidingLog{Limit: limit, Window: time.Hour},
		"quota": dailyQuota(limit),
	} {
		for policyName, policy := range map[string]fleet.Config{
			"fail local": {OnOutage: fleet.FailLocal, Share: 1}, "fail open": {OnOutage: fleet.FailOpen},
		} {
			t.Run(name+" "+policyName, func(t *testing.T) {
				t.Parallel()
				p := redistest.NewProxy(t, sharedServer().Addr())
				l := linkWithin(t, &redis.Options{Addr: p.Addr()}, longTimeout)
				c := policy
				c.MaxDenied = limiter.Off
				b := newLimiter(l, newKey(), kind, c)
				reserve := func(from string, n int) *fleet.Reservation {
					var r *fleet.Reservation
					requireSoon(t, func() bool {
						var err error
						r, err = b.Reserve(t.Context(), "user", n)
						require.NoError(t, err)
						if r.From != from {
							require.NoError(t, r.Refund(t.Context(), n))
						}
						return r.From == from
					})
					return r
				}
				early := reserve(fleet.FromServer, limit-1)
				require.True(t, early.OK)
				p.Refuse()
				local := reserve(fleet.FromOutage, limit)
				require.True(t, local.OK)
				full := func() bool { return !reserve(fleet.FromOutage, 1).OK }
				require.Equal(t, policyName == "fail local", full())
				require.Error(t, early.Refund(t.Context(), 2), "it is the server's")
				require.Equal(t, policyName == "fail local", full())
				p.Accept()
				require.True(t, reserve(fleet.FromServer, 1).OK)
				require.False(t, reserve(fleet.FromServer, 1).OK)
				require.NoError(t, local.Refund(t.Context(), limit))
				require.False(t, reserve(fleet.FromServer, 1).OK, "the server has granted none of these tokens")
				require.NoError(t, early.Refund(t.Context(), 2)) // a little has been refilled
				require.True(t, reserve(fleet.FromServer, 1).OK)
			})
		}
	}
}

// A token of a lease counts since the lease was taken.
func TestATokenOfAnOldLeaseIsNotGivenBack(t *testing.T) {
	t.Parallel()
	const limit, span = 100, 2 * time.Second
	l := connect(t)
	window := fleet.FixedWindow{Limit: limit, Window: span}
	leased := newLimiter(l, "old lease", window, fleet.Config{OnOutage: fleet.FailError, MaxLease: 10})
	plain := newLimiter(l, "old lease", window, errorOnOutage)
	for tries := range 10 {
		// a lease of the end of a window, of which tokens are left
		at := time.Now()
		waitFor(at.Truncate(span).Add(span - 100*ms).Sub(at))
		for from := fleet.FromServer; from != fleet.FromLease; {
			r, err := leased.Take(t.Context(), "user", 1)
			require.NoError(t, err)
			from = r.From
		}
		at = time.Now()
		next := at.Truncate(span).Add(span)
		waitFor(next.Add(5 * ms).Sub(at))
		r, err := leased.Reserve(t.Context(), "user", 1)
		require.NoError(t, err)
		all, err := plain.Take(t.Context(), "user", limit)
		require.NoError(t, err)
		require.NoError(t, r.Refund(t.Context(), 1))
		one, err := plain.Take(t.Context(), "user", 1)
		require.NoError(t, err)
		if r.From == fleet.FromLease && all.OK && time.Since(next) < span {
			require.False(t, one.OK)
			return
		}
		t.Log("the machine was slow in try", tries)
	}
	t.Fatal("no lease was left in ten windows")
}

// A lease is given back some time after it was taken. Tokens that have returned by themselves
// meanwhile are not given back again.
func TestALeaseThatIsGivenBackLateGivesBackOnlyWhatStillCounts(t *testing.T) {
	t.Parallel()
	const limit, span = 100, 2 * time.Second
	l := connect(t)
	for name, kind := range map[string]fleet.Limit{
		"fixed": fleet.FixedWindow{Limit: limit, Window: span}, "sliding": fleet.SlidingWindow{Limit: limit, Window: span},
		"log": fleet.SlidingLog{Limit: limit, Window: span},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			leased := newLimiter(l, "late lease "+name, kind, fleet.Config{OnOutage: fleet.FailError, MaxLease: 10})
			plain := newLimiter(l, "late lease "+name, kind, errorOnOutage)
			for from := fleet.FromServer; from != fleet.FromLease; {
				r, err := leased.Take(t.Context(), "user", 1)
				require.NoError(t, err)
				from = r.From
			}
			// until all has come back, and then the beginning of a window
			waitFor(span + span/10 + 20*ms)
			at := time.Now()
			waitFor(at.Truncate(span).Add(span + 5*ms).Sub(at))
			requireTake(t, taken, plain.Take, "user", limit)
			require.NoError(t, leased.Close(t.Context()))
			requireTake(t, refused, plain.Take, "user", 1)
		})
	}
}
