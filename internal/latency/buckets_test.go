package latency_test

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/latency"
)

func TestEveryBoundBelongsToItsOwnBucket(t *testing.T) {
	for i := latency.Lowest - 50; i <= latency.Lowest+latency.Buckets+50; i++ {
		bound := latency.Bound(i)
		require.Equal(t, i, latency.Index(bound), "the bound of bucket %d", i)
		require.Equal(t, i, latency.Index(math.Nextafter(bound, 0)), "just below the bound of bucket %d", i)
		require.Equal(t, i+1, latency.Index(math.Nextafter(bound, math.Inf(1))), "just above the bound of bucket %d", i)
	}
}

// TestBoundsAreEighthPowers raises the numbers two units in the last place below and above each
// bound to the eighth power, exactly. The power of two must be between the results.
func TestBoundsAreEighthPowers(t *testing.T) {
	eighth := func(x float64) *big.Float {
		y := new(big.Float).SetPrec(600).SetFloat64(x)
		for range latency.Schema {
			y.Mul(y, y)
		}
		return y
	}
	for i := range 8 {
		bound, power := latency.Bound(i), new(big.Float).SetMantExp(big.NewFloat(1), i)
		ulp := math.Nextafter(bound, 2) - bound
		require.Negative(t, eighth(bound-2*ulp).Cmp(power), "bound of bucket %d", i)
		require.Positive(t, eighth(bound+2*ulp).Cmp(power), "bound of bucket %d", i)
	}
}

// TestBucketOfEqualsIndex compares the bucket of a duration, found with integers, with the index of
// its seconds: around every bound, and at random.
func TestBucketOfEqualsIndex(t *testing.T) {
	check := func(nanos int64) {
		if nanos < 0 {
			return
		}
		want := 0
		if s := time.Duration(nanos).Seconds(); s > 0 {
			want = min(max(latency.Index(s)-latency.Lowest, 0), latency.Buckets-1)
		}
		require.Equal(t, want, latency.BucketOf(nanos), "%d ns", nanos)
	}
	for i := range latency.Buckets + 20 {
		at := int64(latency.Bound(latency.Lowest-10+i) * 1e9)
		for d := int64(-3); d <= 3; d++ {
			check(at + d)
		}
	}
	rnd := rand.New(rand.NewPCG(8, 8))
	for range 500_000 {
		check(rnd.Int64() >> rnd.IntN(63))
	}
	for _, n := range []int64{0, 1, 2, 7, 8, 15, 16, math.MaxInt64} {
		check(n)
	}
}
