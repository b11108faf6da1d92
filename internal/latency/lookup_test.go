package latency_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/latency"
)

// TestBucketOfTakesAtMostTwoSteps keeps Record cheap.
func TestBucketOfTakesAtMostTwoSteps(t *testing.T) {
	check := func(nanos int64) {
		steps := latency.BucketOf(nanos) - latency.FirstBucket(nanos)
		require.True(t, steps >= 0 && steps <= 2, "%d ns: %d steps", nanos, steps)
	}
	for i := range latency.Buckets {
		at := int64(latency.Bound(latency.Lowest+i) * 1e9)
		check(at - 1)
		check(at)
		check(at + 1)
	}
	rnd := rand.New(rand.NewPCG(9, 9))
	for range 100_000 {
		check(rnd.Int64() >> rnd.IntN(63))
	}
	check(math.MaxInt64)
}
