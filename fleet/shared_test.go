package fleet_test

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/fleet"
	"github.com/weir-go/weir/fleet/internal/redistest"
	"github.com/weir-go/weir/limiter"
)

// tenantOf returns the part of a key before the slash.
func tenantOf(key string) string {
	tenant, _, _ := strings.Cut(key, "/")
	return tenant
}

// sharedLinks returns links to one server and to several.
func sharedLinks(t *testing.T) map[string]*fleet.Link {
	ring := redis.NewRing(&redis.RingOptions{
		Addrs: map[string]string{"a": redistest.Start(t).Addr(), "b": redistest.Start(t).Addr()}, ContextTimeoutEnabled: true, HeartbeatFrequency: time.Hour,
	})
	t.Cleanup(func() { _ = ring.Close() })
	c := fleet.LinkConfig{Timeout: longTimeout, Prefix: keyPrefix(t)}
	return map[string]*fleet.Link{
		"one server": connect(t), "a Cluster": connectTo(t, dialCluster(t, sharedCluster().Addrs()...), c), "a Ring": connectTo(t, ring, c),
	}
}

// Each limit has its own Redis key, whatever the users' keys are.
func TestSharedLimitsHaveTheirOwnRedisKeys(t *testing.T) {
	for name, link := range sharedLinks(t) {
		b := newLimiters(link, "meet", errorOnOutage, fleet.FixedWindow{Limit: 1, Window: 24 * 365 * time.Hour},
			fleet.Shared{By: func(string) string { return "user" }, Limit: fleet.FixedWindow{Limit: 2, Window: 24 * 365 * time.Hour}})
		for key, ok := range map[string]bool{"": true, "user": true} {
			r, err := b.Take(t.Context(), key, 1)
			require.NoError(t, err)
			require.Equal(t, ok, r.OK, "%s: %q", name, key)
		}
		r, err := b.Take(t.Context(), "another", 1)
		require.NoError(t, err)
		require.False(t, r.OK, name)
	}
}

// takeOften takes one or two tokens, 25 times, and returns how many it got in total.
func takeOften(t *testing.T, b *fleet.Limiter, key string) (granted int64) {
	for n := range 25 {
		r, err := b.Take(t.Context(), key, 1+n%2)
		if err != nil {
			t.Error(err)
			return granted
		}
		if r.OK {
			granted += int64(1 + n%2)
		}
	}
	return granted
}

// With many callers and keys, no limit is exceeded, and refused requests have left nothing behind
// in the end.
func TestSharedLimitsHoldUnderLoad(t *testing.T) {
	const users, each, tenants, everybody = 12, 30, 100, 150
	for name, link := range sharedLinks(t) {
		t.Run(name, func(t *testing.T) {
			const year = 24 * 365 * time.Hour
			b := newLimiters(link, "load", fleet.Config{OnOutage: fleet.FailError, MaxDenied: limiter.Off},
				fleet.TokenBucket{Rate: limiter.Per(1, year), Burst: each},
				fleet.Shared{By: tenantOf, Limit: fleet.SlidingLog{Limit: tenants, Window: year}},
				fleet.Shared{Limit: fleet.FixedWindow{Limit: everybody, Window: year}})
			var granted [users]atomic.Int64
			var g sync.WaitGroup
			for i := range users {
				key := fmt.Sprintf("t%d/u%d", i%3, i)
				for range 3 {
					g.Go(func() { granted[i].Add(takeOften(t, b, key)) })
				}
			}
			g.Wait()
			all, of := int64(0), [3]int64{}
			for i := range users {
				n := granted[i].Load()
				require.LessOrEqual(t, n, int64(each))
				of[i%3] += n
				all += n
			}
			require.LessOrEqual(t, all, int64(everybody))
			for i := range users {
				left, err := b.TakeEach(t.Context(), fmt.Sprintf("t%d/u%d", i%3, i), 0)
				require.NoError(t, err)
				require.LessOrEqual(t, of[i%3], int64(tenants))
				require.Equal(t, [3]int64{each - granted[i].Load(), tenants - of[i%3], everybody - all},
					[3]int64{int64(left[0].Remaining), int64(left[1].Remaining), int64(left[2].Remaining)}, "what was refused has been given back")
			}
			require.Greater(t, all, int64(everybody-10))
		})
	}
}

func TestRefundReachesAllLimitsAndResetOnlyThoseOfTheKey(t *testing.T) {
	for name, link := range sharedLinks(t) {
		b := newLimiters(link, "back", errorOnOutage, fleet.FixedWindow{Limit: 10, Window: 24 * 365 * time.Hour},
			fleet.Shared{Limit: fleet.FixedWindow{Limit: 15, Window: 24 * 365 * time.Hour}})
		left := func(key string) [2]int {
			each, err := b.TakeEach(t.Context(), key, 0)
			require.NoError(t, err)
			return [2]int{each[0].Remaining, each[1].Remaining}
		}
		for _, key := range []string{"a", "b"} {
			r, err := b.Take(t.Context(), key, 7)
			require.NoError(t, err)
			require.True(t, r.OK, name)
		}
		require.Equal(t, [2]int{3, 1}, left("a"), name)
		require.NoError(t, b.Refund(t.Context(), time.Now(), "a", 2))
		require.Equal(t, [2]int{5, 3}, left("a"), name)
		require.NoError(t, b.Reset(t.Context(), "a"))
		require.Equal(t, [2]int{10, 3}, left("a"), name)
		require.Equal(t, [2]int{3, 3}, left("b"), name)
	}
	alone := newLimiter(connect(t), "alone", fleet.Shared{Limit: hourlyBucket}, errorOnOutage)
	require.EqualError(t, alone.Reset(t.Context(), "a"), `fleet: limiter "alone" has nothing to reset: its limits are Shared`)
}

// Another key may take tokens that one key gives back. Remembered refusals are forgotten, and
// waiters are woken.
func TestRefundOfASharedLimitReachesOtherKeys(t *testing.T) {
	for name, link := range sharedLinks(t) {
		b := newLimiters(link, "wake", errorOnOutage, fleet.TokenBucket{Rate: limiter.Per(1, time.Hour), Burst: 5},
			fleet.Shared{Limit: fleet.TokenBucket{Rate: limiter.Per(1, time.Hour), Burst: 4}})
		for _, want := range []struct {
			key  string
			n    int
			ok   bool
			from string
		}{
			{"a", 4, true, fleet.FromServer}, {"b", 1, false, fleet.FromServer}, {"b", 1, false, fleet.FromDenyCache},
		} {
			r, err := b.Take(t.Context(), want.key, want.n)
			require.NoError(t, err)
			require.Equal(t, [2]any{want.ok, want.from}, [2]any{r.OK, r.From}, "%s: %+v", name, want)
		}
		require.NoError(t, b.Refund(t.Context(), time.Now(), "a", 1))
		r, err := b.Take(t.Context(), "b", 1)
		require.NoError(t, err)
		require.True(t, r.OK, name)

		waits := make(chan error, 1)
		go func() { waits <- b.Wait(t.Context(), "c", 1) }()
		require.Never(t, func() bool { return len(waits) > 0 }, 50*ms, 10*ms, name)
		require.NoError(t, b.Refund(t.Context(), time.Now(), "a", 1))
		select {
		case err := <-waits:
			require.NoError(t, err, name)
		case <-time.After(longTimeout):
			t.Fatal("the waiter was not woken: " + name)
		}
		require.ErrorIs(t, waitWithin(t, b, time.Minute, "d", 1), limiter.ErrLimited, name)
		left, err := b.TakeEach(t.Context(), "d", 0)
		require.NoError(t, err)
		require.Equal(t, [2]int{5, 0}, [2]int{left[0].Remaining, left[1].Remaining}, "%s: a wait that fails takes nothing", name)
	}
}

func TestValidateSharedLimits(t *testing.T) {
	l := connect(t)
	for want, c := range map[string]fleet.Config{
		"fleet: Limit of a Shared is nil, must be given":                        {Limits: []fleet.Limit{fleet.Shared{}}},
		"fleet: Limit of a Shared is a Shared, must be a limit of another kind": {Limits: []fleet.Limit{fleet.Shared{Limit: fleet.Shared{Limit: hourlyBucket}}}},
		"fleet: Limit is 0, must lie between 1 and 2147483647":                  {Limits: []fleet.Limit{fleet.Shared{Limit: fleet.FixedWindow{Window: time.Second}}}},
		"fleet: MaxLease is 10, must be 0 if Limits[1] is Shared":               {Limits: []fleet.Limit{hourlyBucket, fleet.Shared{Limit: hourlyBucket}}, MaxLease: 10},
	} {
		c.Link, c.OnOutage = l, fleet.FailOpen
		require.EqualError(t, c.Validate(), want)
	}
}
