package limiter_test

import (
	"context"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/limiter"
)

// busyGroup returns a group whose keys have one token per hour.
func busyGroup(change func(*limiter.GroupConfig[string])) *limiter.Group[string] {
	c := limiter.GroupConfig[string]{Rate: limiter.Per(1, time.Hour), Burst: 1, Name: "api", ShowKeys: true}
	if change != nil {
		change(&c)
	}
	return limiter.NewGroup(c)
}

func TestBusiestCountsRefusalsOfEveryMethod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := busyGroup(nil)
		deadline, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		refusals := []func(k limiter.Keyed[string]){
			func(k limiter.Keyed[string]) { k.Take(1) },
			func(k limiter.Keyed[string]) { k.Take(-1) },
			func(k limiter.Keyed[string]) { k.TakeAt(time.Now(), 2) },
			func(k limiter.Keyed[string]) { require.Error(t, limiter.WaitAtMost(t.Context(), k, 1, 0)) },
			func(k limiter.Keyed[string]) { require.Error(t, limiter.WaitAtMost(t.Context(), k, 1, time.Minute)) },
			func(k limiter.Keyed[string]) { require.Error(t, k.Wait(deadline, 1)) },
			func(k limiter.Keyed[string]) { limiter.NewJoint("", k).Take(1) },
			func(k limiter.Keyed[string]) {
				two := limiter.NewJoint("", k, limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerSecond(1)}))
				require.Error(t, limiter.WaitAtMost(t.Context(), two, 1, time.Minute))
			},
		}
		for i, refuse := range refusals {
			key := strconv.Itoa(i)
			require.True(t, g.Get(key).Take(1).OK) // is not counted
			require.Zero(t, g.Get(key).TakeAt(time.Now(), 0).Remaining)
			refuse(g.Get(key))
		}
		require.Equal(t, int64(len(refusals)), g.Stats().Refused)
		keys := g.Busiest(100)
		require.Len(t, keys, len(refusals))
		for _, k := range keys {
			require.Equal(t, limiter.BusyKey{Limiter: "api", Key: k.Key, AtLeast: 1, AtMost: 1}, k)
		}
	})
}

func TestCancelledWaitIsNotARefusalOfAKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := busyGroup(nil)
		require.True(t, g.Get("a").Take(1).OK)
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			time.Sleep(time.Second)
			cancel()
		}()
		require.ErrorIs(t, g.Get("a").Wait(ctx, 1), context.Canceled)
		require.Empty(t, g.Busiest(9))
	})
}

func TestBusiestCountsKeysWithoutRoomAndShadowedKeys(t *testing.T) {
	for _, shareNew := range []bool{false, true} {
		g := busyGroup(func(c *limiter.GroupConfig[string]) { c.MaxKeys, c.ShareNew = 1, shareNew })
		require.True(t, g.Get("first").Take(1).OK)
		shared := g.Get("second").Take(1).OK // the token of the shared bucket
		require.Equal(t, shareNew, shared)
		require.False(t, g.Get("third").Take(1).OK)
		require.Contains(t, g.Busiest(9), limiter.BusyKey{Limiter: "api", Key: "third", AtLeast: 1, AtMost: 1})
	}
	g := busyGroup(func(c *limiter.GroupConfig[string]) { c.Shadow = true })
	for range 3 {
		require.True(t, g.Get("a").Take(1).OK)
	}
	require.Equal(t, []limiter.BusyKey{{Limiter: "api", Key: "a", AtLeast: 2, AtMost: 2}}, g.Busiest(9))
}

func TestBusiestHashesKeysUntilTheyAreShown(t *testing.T) {
	g := busyGroup(func(c *limiter.GroupConfig[string]) { c.ShowKeys = false })
	refuse := func() {
		g.Get("alice").Take(1)
		g.Get("alice").Take(1)
	}
	refuse()
	require.Regexp(t, "^#[0-9a-f]{12}$", g.Busiest(1)[0].Key)
	require.NoError(t, g.Reconfigure(limiter.GroupConfig[string]{Rate: limiter.Per(1, time.Hour), Burst: 1, Name: "api", ShowKeys: true}))
	refuse()
	require.Equal(t, "alice", g.Busiest(1)[0].Key)
}

func TestGroupWithoutANameCountsNoKeys(t *testing.T) {
	c := limiter.GroupConfig[string]{Rate: limiter.PerSecond(1), ShowKeys: true}
	require.EqualError(t, c.Validate(), "limiter: ShowKeys is set without a Name, must have both")
	c.ShowKeys = false
	g := limiter.NewGroup(c)
	g.Get("a").Take(2)
	require.Empty(t, g.Busiest(9))
	require.NoError(t, g.Reconfigure(c))
}

func TestRefusalsOfAKnownKeyDoNotAllocate(t *testing.T) {
	g := busyGroup(nil)
	g.Get("a").Take(1)
	g.Get("a").Take(1)
	require.Zero(t, testing.AllocsPerRun(100, func() { g.Get("a").Take(1) }))
}
