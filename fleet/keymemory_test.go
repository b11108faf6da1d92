package fleet_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/fleet"
	"github.com/weir-go/weir/fleet/internal/redistest"
	"github.com/weir-go/weir/fleet/rediscell"
	"github.com/weir-go/weir/limiter"
)

// docs/redis.md states the bytes per key, with a user's key of 16 bytes, the name "users" and the
// default prefix.
func TestMemoryPerKindInRedis(t *testing.T) {
	t.Parallel()
	direct := newClient(t, redistest.Start(t))
	l := connectTo(t, direct, fleet.LinkConfig{Timeout: longTimeout})
	const keys = 1000
	for name, c := range map[string]struct {
		limit    fleet.Limit
		requests int
		most     int64 // bytes per key
	}{
		"token bucket":          {fleet.TokenBucket{Rate: limiter.PerMinute(1), Burst: 10}, 3, 200},
		"fixed window":          {fleet.FixedWindow{Limit: 10, Window: time.Hour}, 3, 200},
		"calendar quota":        {dailyQuota(10), 3, 200},
		"sliding window":        {fleet.SlidingWindow{Limit: 10, Window: time.Hour}, 3, 200},
		"log of 1 request":      {fleet.SlidingLog{Limit: 1000, Window: time.Hour}, 1, 200},
		"log of 100 requests":   {fleet.SlidingLog{Limit: 1000, Window: time.Hour}, 100, 4500},
		"cl.throttle, a script": {rediscell.Limit(9, 10, time.Hour), 3, 150},
	} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, direct.FlushAll(t.Context()).Err())
			used := func() int64 {
				v, err := direct.Info(t.Context(), "memory").Result()
				require.NoError(t, err)
				var n int64
				_, err = fmt.Sscanf(v[len("# Memory\r\n"):], "used_memory:%d", &n)
				require.NoError(t, err)
				return n
			}
			b := newLimiter(l, "users", c.limit, errorOnOutage)
			_, err := b.Take(t.Context(), "warm", 1)
			require.NoError(t, err)
			before := used()
			for i := range keys {
				for range c.requests {
					_, err := b.Take(t.Context(), fmt.Sprintf("%016d", i), 1)
					require.NoError(t, err)
				}
				if c.requests > 10 && i == keys/10 {
					break
				}
			}
			n := int64(keys)
			if c.requests > 10 {
				n = keys/10 + 1
			}
			t.Logf("%d bytes per key", (used()-before)/n)
			require.LessOrEqual(t, (used()-before)/n, c.most)
		})
	}
}
