//go:build !386 && !arm && !mips && !mipsle

package limiter_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/limiter"
)

// These tests take more tokens than a 32-bit int can hold.

// The unit is longer than a nanosecond, and the times are before t0.
func TestBucketsOfManySlowTokensBeforeTheirEpoch(t *testing.T) {
	const all = 1 << 40
	b := newBucket(limiter.Per(1, hour), all)
	then := start.Add(-2 * hour)
	require.True(t, b.TakeAt(then, all).OK)
	r := b.TakeAt(then, 1)
	require.False(t, r.OK)
	require.InDelta(t, hour, r.RetryAfter, float64(8*ms), "exact to two units")
	require.False(t, b.TakeAt(then.Add(r.RetryAfter-1), 1).OK)
	require.True(t, b.TakeAt(then.Add(r.RetryAfter), 1).OK)
}

func TestABurstHasAnUpperBound(t *testing.T) {
	c := limiter.TokenBucketConfig{Rate: limiter.PerSecond(1), Burst: 1 << 40}
	require.NoError(t, c.Validate())
	c.Burst++
	require.EqualError(t, c.Validate(), "limiter: Burst is 1099511627777, must be at most 1099511627776")
}
