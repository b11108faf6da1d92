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

// splitKey returns a key that is, or is not, on the server of the limit for all keys.
func splitKey(t *testing.T, ring *redis.Ring, name string, same bool) string {
	t.Helper()
	shard := func(tag string) string {
		client, err := ring.GetShardClientForKey(keyPrefix(t) + name + ":{" + tag + "}")
		require.NoError(t, err)
		return client.Options().Addr
	}
	for {
		if key := newKey(); (shard(key) == shard("%")) == same {
			return key
		}
	}
}

// twoServers is a Ring of two servers. One has the limit for all keys, and the other has a key.
type twoServers struct {
	link      *fleet.Link
	everybody *redistest.Server
	other     *redistest.Server
	key       string
	ring      *redis.Ring
}

func newTwoServers(t *testing.T, name string, timeout time.Duration) twoServers {
	a, b := redistest.Start(t), redistest.Start(t)
	ring := redis.NewRing(&redis.RingOptions{
		Addrs: map[string]string{"a": a.Addr(), "b": b.Addr()}, ContextTimeoutEnabled: true, HeartbeatFrequency: time.Hour,
	})
	t.Cleanup(func() { _ = ring.Close() })
	two := twoServers{everybody: a, other: b, ring: ring}
	two.link = connectTo(t, ring, fleet.LinkConfig{Timeout: timeout, Prefix: keyPrefix(t)})
	client, err := ring.GetShardClientForKey(keyPrefix(t) + name + ":{%}")
	require.NoError(t, err)
	if client.Options().Addr == b.Addr() {
		two.everybody, two.other = b, a
	}
	two.key = splitKey(t, ring, name, false)
	return two
}

// An unavailable server affects only its own limits: the policy decides about those, and Redis
// about the others.
func TestPolicyDecidesOnlyAboutTheUnavailableSharedLimit(t *testing.T) {
	t.Parallel()
	own, all := fleet.FixedWindow{Limit: 6, Window: 24 * 365 * time.Hour}, fleet.Shared{Limit: fleet.FixedWindow{Limit: 4, Window: 24 * 365 * time.Hour}}
	for policy, allowed := range map[fleet.OnOutage]int{fleet.FailOpen: 6, fleet.FailClosed: 0, fleet.FailLocal: 2, fleet.FailError: 0} {
		t.Run(string(policy), func(t *testing.T) {
			t.Parallel()
			two := newTwoServers(t, "stand-in", time.Second)
			c := fleet.Config{OnOutage: policy, MaxDenied: limiter.Off}
			if policy == fleet.FailLocal {
				c.Share = 0.5
			}
			b := newLimiters(two.link, "stand-in", c, own, all)
			two.everybody.Pause()
			defer two.everybody.Continue()
			granted := 0
			for range 10 {
				r, err := b.Take(t.Context(), two.key, 1)
				require.Equal(t, policy == fleet.FailError, err != nil, "%v", err)
				if err != nil {
					require.ErrorIs(t, err, fleet.ErrUnavailable)
					continue
				}
				require.Equal(t, fleet.FromOutage, r.From)
				if r.OK {
					granted++
				}
			}
			require.Equal(t, allowed, granted)
			require.Equal(t, []string{two.everybody.Addr()}, openServers(two.link))
			if each, err := b.TakeEach(t.Context(), two.key, 1); policy != fleet.FailError {
				require.NoError(t, err)
				require.Equal(t, [2]string{fleet.FromServer, fleet.FromOutage}, [2]string{each[0].From, each[1].From})
				if each[0].OK && each[1].OK {
					granted++
				}
			}
			two.everybody.Continue()
			require.Eventually(t, func() bool {
				each, err := b.TakeEach(t.Context(), two.key, 0)
				return err == nil && each[0].From == fleet.FromServer && each[0].Remaining == 6-granted
			}, longTimeout, 20*ms, "what was refused has been given back")
		})
	}
}

// If the key's own server is unavailable, the limit for all keys still holds.
func TestTheSharedLimitHoldsWhileTheKeysOwnServerIsUnavailable(t *testing.T) {
	t.Parallel()
	two := newTwoServers(t, "held", time.Second)
	b := newLimiters(two.link, "held", fleet.Config{OnOutage: fleet.FailOpen, MaxDenied: limiter.Off}, fleet.FixedWindow{Limit: 6, Window: time.Hour},
		fleet.Shared{Limit: fleet.SlidingLog{Limit: 4, Window: time.Hour}})
	two.other.Kill()
	granted := 0
	for range 10 {
		r, err := b.Take(t.Context(), two.key, 1)
		require.NoError(t, err)
		if r.OK {
			granted++
		}
	}
	require.Equal(t, 4, granted)
}
