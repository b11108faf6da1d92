package fleet_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/fleet"
	"github.com/weir-go/weir/fleet/rediscell"
	"github.com/weir-go/weir/limiter"
)

// A key takes the memory stated in the package comment. That includes about 60 bytes for its entry
// and its expiry, which Redis does not count.
func TestMemoryOfAKeyInRedis(t *testing.T) {
	direct := newClient(t, sharedServer())
	l := connectTo(t, newClient(t, sharedServer()), fleet.LinkConfig{Timeout: longTimeout, Prefix: "size:"})
	for name, test := range map[string]struct {
		limit       fleet.Limit
		takes       int
		bytes, each int64 // of a key, and of each take
	}{
		"bucket":          {fleet.TokenBucket{Rate: limiter.Per(1000, time.Hour), Burst: 1000}, 200, 200, 0},
		"bucket of parts": {fleet.TokenBucket{Rate: limiter.Per(999, time.Hour), Burst: 999}, 200, 200, 0},
		"fixed":           {fleet.FixedWindow{Limit: 1000, Window: time.Hour}, 200, 200, 0},
		"quota":           {dailyQuota(1000), 200, 200, 0},
		"sliding":         {fleet.SlidingWindow{Limit: 1000, Window: time.Hour, Buckets: 1000}, 200, 200, 20},
		"cell":            {rediscell.Limit(999, 1000, time.Hour), 200, 200, 0},
		"log":             {fleet.SlidingLog{Limit: 1000, Window: time.Hour}, 1000, 200, 130},
		"log of 120":      {fleet.SlidingLog{Limit: 1000, Window: time.Hour}, 120, 200, 45},
		"short log":       {fleet.SlidingLog{Limit: 1000, Window: time.Hour}, 10, 200, 45},
	} {
		t.Run(name, func(t *testing.T) {
			b := newLimiter(l, name, test.limit, errorOnOutage)
			for i := range test.takes {
				at := testStart
				if name == "sliding" {
					at = at.Add(time.Duration(i) * time.Hour / 1000)
				}
				_, err := b.TakeAt(t.Context(), at, "user:42", 1)
				require.NoError(t, err)
			}
			held := direct.MemoryUsage(t.Context(), b.StateKeys("user:42")[0], 0).Val()
			t.Logf("%d bytes after %d takes", held, test.takes)
			require.Positive(t, held)
			require.LessOrEqual(t, held+60, test.bytes+test.each*int64(test.takes))
		})
	}
}
