package limiter_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/limiter"
)

// A token that takes longer than 146 years never comes, and the answer says so. A token that takes
// less long comes when the answer says.
func TestSlowRatesAreExactOrNever(t *testing.T) {
	for years, comes := range map[int64]bool{100: true, 140: true, 150: false, 250: false} {
		rate := limiter.Per(1, year*time.Duration(years))
		for _, burst := range []int{1, 2} {
			group := limiter.NewGroupAt(limiter.GroupConfig[int]{Rate: rate, Burst: burst}, start)
			for name, l := range map[string]limiter.TimedLimiter{
				"bucket": limiter.NewTokenBucketAt(limiter.TokenBucketConfig{Rate: rate, Burst: burst}, start), "key": group.Get(1),
				"leaky": limiter.NewLeakyBucketAt(limiter.LeakyBucketConfig{Rate: rate, Capacity: burst}, start),
			} {
				for l.TakeAt(start, 1).OK { // until it is empty
				}
				r := l.TakeAt(start, 1)
				if !comes {
					require.Equal(t, limiter.Never, r.RetryAfter, "%s: 1 per %d years, burst %d", name, years, burst)
					continue
				}
				require.LessOrEqual(t, (year*time.Duration(years) - r.RetryAfter).Abs(), time.Duration(1), "%s: 1 per %d years, burst %d", name, years, burst)
				require.False(t, l.TakeAt(start.Add(r.RetryAfter-1), 1).OK, name)
				require.True(t, l.TakeAt(start.Add(r.RetryAfter), 1).OK, name)
			}
		}
	}
}
