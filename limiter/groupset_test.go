package limiter_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/limiter"
)

func TestAGroupYieldsItsKeys(t *testing.T) {
	g := newGroup(limiter.GroupConfig[string]{
		Rate: limiter.Per(1, time.Hour), Burst: 2, Tiers: []limiter.Tier{{Rate: limiter.Per(5, time.Hour)}},
		TierOf: func(key string) int { return len(key) - 3 },
	})
	for _, key := range []string{"ann", "bob", "carl"} {
		require.True(t, g.Get(key).TakeAt(start, 1).OK)
	}
	g.Get("peeked").TakeAt(start, 0)
	var keys []string
	for key, l := range g.All() {
		keys = append(keys, key)
		require.Equal(t, g.Get(key).TakeAt(start, 0), l.TakeAt(start, 0))
		g.Get(key).TakeAt(start, 1) // would deadlock if All held a lock
	}
	slices.Sort(keys)
	require.Equal(t, []string{"ann", "bob", "carl"}, keys)
	for range g.All() {
		break
	}
}

func TestForgetMakesAKeyNew(t *testing.T) {
	g := newGroup(limiter.GroupConfig[string]{Rate: limiter.Per(1, time.Hour), Burst: 2, MaxKeys: 2})
	require.False(t, g.Forget("ann"))
	require.True(t, g.Get("ann").TakeAt(start, 2).OK)
	require.True(t, g.Get("bob").TakeAt(start, 2).OK)
	g.Get("ann").HoldAt(start, hour)
	require.False(t, g.Get("carl").TakeAt(start, 1).OK, "the group is full")

	require.True(t, g.Forget("ann"))
	require.False(t, g.Forget("ann"))
	require.Equal(t, 1, g.Len())
	require.True(t, g.Get("carl").TakeAt(start, 1).OK, "there is room now")
	require.True(t, g.Forget("carl"))
	require.True(t, g.Get("ann").TakeAt(start, 2).OK, "the bucket is full and not held")
	require.False(t, g.Get("bob").TakeAt(start, 1).OK, "another key does not change")
	require.Equal(t, 2, g.Len())

	g.Get("held").HoldAt(start, hour)
	require.True(t, g.Forget("held"), "a key that is held but not remembered")
}

func TestForgetWakesTheWaitersOfAKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := limiter.NewGroup(limiter.GroupConfig[string]{Rate: limiter.Per(1, time.Hour), Burst: 1})
		g.Get("ann").Take(1)
		l := newCallers(t, g.Get("ann"))
		l.start(t.Context(), "first", 1)
		time.Sleep(sec)
		g.Forget("ann")
		l.requireResults(arrival{"first", sec, nil})
	})
}

func TestAGroupIsReconfigured(t *testing.T) {
	c := limiter.GroupConfig[string]{
		Rate: limiter.Per(1, time.Hour), Burst: 2, Tiers: []limiter.Tier{{Rate: limiter.Per(1, time.Hour), Burst: 5}},
		TierOf: func(key string) int { return len(key) - 2 }, Name: "logins",
	}
	g := newGroup(c)
	require.True(t, g.Get("a").TakeAt(start, 1).OK)
	require.True(t, g.Get("aa").TakeAt(start, 4).OK)

	c.Burst, c.Tiers = 10, []limiter.Tier{{Rate: limiter.PerSecond(1), Burst: 3}}
	c.Shadow = true
	require.NoError(t, g.ReconfigureAt(start, c))
	require.Equal(t, limiter.Result{OK: true, Limit: 10, Remaining: 1, ResetAfter: 9 * hour}, g.Get("a").TakeAt(start, 0))
	require.Equal(t, 1, g.Get("aa").TakeAt(start, 0).Remaining, "tokens are kept")
	require.Equal(t, 2, g.Get("b").TakeAt(start, 0).Remaining, "a new key is like an idle one")
	require.True(t, g.Get("aa").TakeAt(start, 3).OK, "nothing is refused in shadow mode")
	require.EqualValues(t, 1, g.Stats().Shadowed)
	require.EqualValues(t, 2, g.Stats().Allowed)
	require.EqualValues(t, 1, readMetrics(t, g)["weir.limiter.requests shadowed"])
	c.Shadow = false
	require.NoError(t, g.ReconfigureAt(start, c))
	require.False(t, g.Get("aa").TakeAt(start, 3).OK)
	require.EqualValues(t, 1, readMetrics(t, g)["weir.limiter.requests shadowed"], "a metric that was shown stays")

	before := g.Get("a").TakeAt(start, 0)
	for name, change := range map[string]func(c *limiter.GroupConfig[string]){
		"tiers": func(c *limiter.GroupConfig[string]) { c.Tiers = append(c.Tiers, c.Tiers...) }, "keys": func(c *limiter.GroupConfig[string]) { c.MaxKeys = 7 },
		"sharing": func(c *limiter.GroupConfig[string]) { c.ShareNew = true }, "waiters": func(c *limiter.GroupConfig[string]) { c.MaxWaiters = 7 },
		"name": func(c *limiter.GroupConfig[string]) { c.Name = "others" }, "no name": func(c *limiter.GroupConfig[string]) { c.Name = "" },
	} {
		other := c
		change(&other)
		other.Burst = 99
		require.ErrorContains(t, g.Reconfigure(other), "limiter: Reconfigure can change Rate, Burst, Tiers, Shadow and ShowKeys", name)
	}
	require.EqualError(t, g.Reconfigure(limiter.GroupConfig[string]{Rate: limiter.PerSecond(-1)}), "limiter: Rate is -1/s, must be above 0")
	require.Equal(t, before, g.Get("a").TakeAt(start, 0), "nothing has changed")
}

// A key without room gives its tokens back to the shared bucket.
func TestARefundOfAKeyWithoutRoom(t *testing.T) {
	g := newGroup(limiter.GroupConfig[string]{Rate: limiter.Per(1, time.Hour), Burst: 2, MaxKeys: 1, ShareNew: true})
	require.True(t, g.Get("ann").TakeAt(start, 2).OK)
	require.True(t, g.Get("bob").TakeAt(start, 2).OK)
	g.Get("bob").RefundNow(1)
	require.True(t, g.Get("carl").TakeAt(start, 1).OK)
	require.False(t, g.Get("carl").TakeAt(start, 1).OK)
	require.False(t, g.Get("ann").TakeAt(start, 1).OK, "the key with room gets nothing")
}

func TestAKeyOfANamedGroupIsCountedInAJoint(t *testing.T) {
	g := limiter.NewGroupAt(limiter.GroupConfig[string]{Rate: limiter.Per(1, time.Hour), Burst: 2, Name: "users"}, start)
	all := limiter.NewJoint("", g.Get("ann"), newSlidingLog(1, hour))
	require.True(t, all.TakeAt(start, 1).OK)
	require.False(t, all.TakeAt(start, 1).OK, "the other limiter refuses")
	require.Equal(t, limiter.Stats{Allowed: 1}, g.Stats())
	require.True(t, g.Get("ann").TakeAt(start, 1).OK)
	require.False(t, all.TakeAt(start, 1).OK)
	require.EqualValues(t, 1, g.Stats().Refused)
	gone, leave := context.WithCancel(t.Context())
	leave()
	require.Equal(t, context.Canceled, g.Get("ann").Wait(gone, 1))
}
