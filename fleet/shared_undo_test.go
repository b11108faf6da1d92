package fleet_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/fleet"
	"github.com/weir-go/weir/fleet/internal/redistest"
	"github.com/weir-go/weir/limiter"
)

// beforeSend is a hook that calls a function before a command is sent.
type beforeSend struct {
	redis.Hook
	call func(cmd redis.Cmder)
}

func (d beforeSend) DialHook(next redis.DialHook) redis.DialHook { return next }

func (d beforeSend) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error { d.call(cmd); return next(ctx, cmd) }
}

func (d beforeSend) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// The key's own server fails between its grant and the refusal by the limit for all keys. The
// request is refused, and only its own tokens stay taken, because they cannot be given back.
func TestServerFailureBetweenTwoGroupsLosesOneRequest(t *testing.T) {
	t.Parallel()
	two := newTwoServers(t, "between", 2*time.Second)
	b := newLimiters(two.link, "between", fleet.Config{OnOutage: fleet.FailOpen, MaxDenied: limiter.Off}, fleet.FixedWindow{Limit: 10, Window: 24 * 365 * time.Hour},
		fleet.Shared{Limit: fleet.FixedWindow{Limit: 4, Window: 24 * 365 * time.Hour}})
	all, err := two.ring.GetShardClientForKey(keyPrefix(t) + "between:{%}")
	require.NoError(t, err)
	neighbour := splitKey(t, two.ring, "between", true)
	_, err = b.Take(t.Context(), two.key, 0) // the servers know the script from now on
	require.NoError(t, err)
	var asked atomic.Int64
	all.AddHook(beforeSend{call: func(redis.Cmder) {
		if asked.Add(1) == 2 { // Peek has read the key, and Take comes next
			two.other.Pause()
			r, err := b.Take(t.Context(), neighbour, 4)
			require.NoError(t, err)
			require.True(t, r.OK)
		}
	}})
	defer two.other.Continue()
	r, err := b.Take(t.Context(), two.key, 3)
	require.NoError(t, err)
	require.False(t, r.OK, "refused by the limit for all keys, which has answered")
	require.Equal(t, fleet.FromServer, r.From)
	two.other.Continue()
	require.Eventually(t, func() bool {
		each, err := b.TakeEach(t.Context(), two.key, 0)
		require.NoError(t, err)
		left := each[0].Remaining // 7 where the refund was lost, 10 where it arrived after all
		return each[0].From == fleet.FromServer && (left == 7 || left == 10) && each[1].Remaining == 0
	}, longTimeout, 20*ms)
}

// Tokens that are given back have been refused to other requests meanwhile. Those refusals are not
// remembered.
func TestRefusalIsNotRememberedAfterAnUndoneGrant(t *testing.T) {
	two := newTwoServers(t, "lasting", longTimeout)
	b := newLimiters(two.link, "lasting", errorOnOutage, fleet.FixedWindow{Limit: 5, Window: 24 * 365 * time.Hour},
		fleet.Shared{Limit: fleet.FixedWindow{Limit: 4, Window: 24 * 365 * time.Hour}})
	all, err := two.ring.GetShardClientForKey(keyPrefix(t) + "lasting:{%}")
	require.NoError(t, err)
	neighbour := splitKey(t, two.ring, "lasting", true)
	_, err = b.Take(t.Context(), two.key, 0) // the servers know the script from now on
	require.NoError(t, err)
	requireTake := func(key string, n int, ok bool, from string) {
		t.Helper()
		r, err := b.Take(t.Context(), key, n)
		require.NoError(t, err)
		require.Equal(t, [2]any{ok, from}, [2]any{r.OK, r.From})
	}
	var asked atomic.Int64
	all.AddHook(beforeSend{call: func(redis.Cmder) {
		if asked.Add(1) == 2 { // Peek has read the key, and 3 of its own 5 tokens are taken
			requireTake(two.key, 3, false, fleet.FromServer)
			requireTake(two.key, 3, false, fleet.FromDenyCache)
			requireTake(neighbour, 2, true, fleet.FromServer)
		}
	}})
	requireTake(two.key, 3, false, fleet.FromServer)
	requireTake(two.key, 4, false, fleet.FromServer)
	each, err := b.TakeEach(t.Context(), two.key, 0)
	require.NoError(t, err)
	require.Equal(t, [2]int{5, 2}, [2]int{each[0].Remaining, each[1].Remaining})
}

// A caller that gives up between two servers leaves nothing behind.
func TestCancellationBetweenTwoGroupsTakesNothing(t *testing.T) {
	two := newTwoServers(t, "gives-up", longTimeout)
	b := newLimiters(two.link, "gives-up", errorOnOutage, fleet.FixedWindow{Limit: 10, Window: 24 * 365 * time.Hour},
		fleet.Shared{Limit: fleet.FixedWindow{Limit: 4, Window: 24 * 365 * time.Hour}})
	ctx, giveUp := context.WithCancel(t.Context())
	own, err := two.ring.GetShardClientForKey(keyPrefix(t) + "gives-up:{" + two.key + "}")
	require.NoError(t, err)
	_, err = b.Take(t.Context(), two.key, 0)
	require.NoError(t, err)
	own.AddHook(beforeSend{call: func(redis.Cmder) { giveUp() }})
	_, err = b.Take(ctx, two.key, 3)
	require.ErrorIs(t, err, context.Canceled)
	require.Eventually(t, func() bool {
		each, err := b.TakeEach(t.Context(), two.key, 0)
		return err == nil && each[0].Remaining == 10 && each[1].Remaining == 4
	}, longTimeout, ms)
}

// A request takes from the limit of its tenant and gives that back, because the limit for all keys
// refuses. A caller that was meanwhile told to wait for a year is woken.
func TestWaiterIsWokenAfterAnUndoneGrant(t *testing.T) {
	const year = 24 * 365 * time.Hour
	ring := redis.NewRing(&redis.RingOptions{
		Addrs: map[string]string{"a": redistest.Start(t).Addr()}, ContextTimeoutEnabled: true, HeartbeatFrequency: time.Hour,
	})
	t.Cleanup(func() { _ = ring.Close() })
	b := newLimiters(connectTo(t, ring, fleet.LinkConfig{Timeout: longTimeout, Prefix: keyPrefix(t)}), "woken", errorOnOutage,
		fleet.FixedWindow{Limit: 10, Window: year},
		fleet.Shared{By: tenantOf, Limit: fleet.FixedWindow{Limit: 4, Window: year}},
		fleet.Shared{Limit: fleet.FixedWindow{Limit: 4, Window: year}})
	_, err := b.Take(t.Context(), "one/a", 0) // the server knows the scripts from now on
	require.NoError(t, err)
	shard, err := ring.GetShardClientForKey("any")
	require.NoError(t, err)
	var asked atomic.Int64
	waits := make(chan error, 1)
	shard.AddHook(beforeSend{call: func(cmd redis.Cmder) {
		if !strings.Contains(fmt.Sprint(cmd.Args()...), "woken:{%}") || asked.Add(1) != 2 {
			return
		}
		// The limit for all keys has been peeked at, and 3 of the 4 tokens of the tenant are taken.
		go func() { waits <- b.Wait(t.Context(), "one/b", 2) }()
		require.Never(t, func() bool { return len(waits) > 0 }, 100*ms, 10*ms)
		r, err := b.Take(t.Context(), "two/c", 2)
		require.NoError(t, err)
		require.True(t, r.OK)
	}})
	r, err := b.Take(t.Context(), "one/a", 3)
	require.NoError(t, err)
	require.False(t, r.OK)
	select {
	case err := <-waits:
		require.NoError(t, err)
	case <-time.After(longTimeout):
		t.Fatal("the waiter was not woken")
	}
	each, err := b.TakeEach(t.Context(), "one/b", 0)
	require.NoError(t, err)
	require.Equal(t, [3]int{8, 2, 0}, [3]int{each[0].Remaining, each[1].Remaining, each[2].Remaining})
}
