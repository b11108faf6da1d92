package fleet_test

import (
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/fleet"
	"github.com/weir-go/weir/fleet/rediscell"
	"github.com/weir-go/weir/fleet/redisson"
	"github.com/weir-go/weir/limiter"
)

// hostileKeys lists unusual keys that users may send.
var hostileKeys = []string{
	"", " ", "a", "%", "%25", "%7D", "{", "}", "{}", "{a}", "a}b", "a{b}c", "}{", "{{}}", "%sha256:", "a b\tc\r\nd", "\x00\xff\xfe", "ключ", "a:b:c", "user:42",
	"a*?[x]", "' OR 1=1 --", "$(reboot)", strings.Repeat("k", fleet.MaxKey), strings.Repeat("k", fleet.MaxKey+1), strings.Repeat("}", 10_000), strings.Repeat("k", 10_000),
}

func TestDifferentKeysHaveDifferentTags(t *testing.T) {
	l := connect(t)
	b := newLimiter(l, "hostile", fleet.TokenBucket{Rate: limiter.Per(1, time.Hour), Burst: 2}, errorOnOutage)
	seen := map[string]string{}
	for _, key := range hostileKeys {
		redisKey := b.StateKeys(key)[0]
		require.Empty(t, seen[redisKey], "%q and %q have the same tag", key, seen[redisKey])
		seen[redisKey] = "the key " + key
		require.Less(t, len(redisKey), 2*fleet.MaxKey+50)
	}
	for want := 1; want >= 0; want-- {
		for _, key := range hostileKeys {
			r, err := b.Take(t.Context(), key, 1)
			require.NoError(t, err)
			require.Equal(t, want, r.Remaining, "%q", key)
		}
	}
}

// Scenario L58.
func TestAllKeysOfADecisionAreInOneSlot(t *testing.T) {
	c := sharedCluster().Client()
	defer func() { require.NoError(t, c.Close()) }()
	o := *c.Options()
	o.ContextTimeoutEnabled = true
	client := redis.NewClusterClient(&o)
	defer func() { require.NoError(t, client.Close()) }()
	l := connectTo(t, client, fleet.LinkConfig{Timeout: longTimeout, Prefix: keyPrefix(t)})
	window := time.Hour
	all := newLimiters(l, "all", errorOnOutage, fleet.FixedWindow{Limit: 10, Window: window}, fleet.TokenBucket{Rate: limiter.Per(1, time.Hour), Burst: 3},
		fleet.SlidingWindow{Limit: 10, Window: window}, redisson.PerClient(fleet.SlidingLog{Limit: 5, Window: window}, "c1"))
	log := newLimiter(l, "log", fleet.SlidingLog{Limit: 10, Window: window}, errorOnOutage)
	throttle := newLimiter(l, "throttle", rediscell.Limit(1, 1, window), errorOnOutage)
	slots := map[int64]bool{}
	for _, key := range hostileKeys {
		var first int64
		for i, redisKey := range all.StateKeys(key) {
			slot := client.ClusterKeySlot(t.Context(), redisKey).Val()
			slots[slot] = true
			if i == 0 {
				first = slot
			}
			require.Equal(t, first, slot, "%q: %q", key, redisKey)
		}
		r, err := all.Take(t.Context(), key, 2)
		require.NoError(t, err, "%q", key)
		require.Equal(t, 1, r.Remaining)
		require.NoError(t, redisson.SetRate(t.Context(), log, key, 3, window))
		r, err = log.Take(t.Context(), key, 1)
		require.NoError(t, err)
		require.Equal(t, 2, r.Remaining)
		reply, err := throttle.Take(t.Context(), key, 1)
		require.NoError(t, err)
		require.Equal(t, 1, reply.Remaining)
		require.NoError(t, all.Reset(t.Context(), key))
	}
	require.Greater(t, len(slots), 10, "keys are distributed over the Cluster")
}
