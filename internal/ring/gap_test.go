package ring_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/ring"
)

func TestDueAfterAGapLongerThanTheRing(t *testing.T) {
	r := ring.New(10, 3, 1)
	r.Advance(1000, []int64{1})
	require.False(t, r.Due(10_009))
	require.True(t, r.Due(10_010))
}

// TestAPauseCostsAsMuchAsAStep measures that a pause longer than the ring costs as much as a step
// by one bucket, because it does not visit the skipped buckets.
func TestAPauseCostsAsMuchAsAStep(t *testing.T) {
	const reach, advances = 100_000, 2_000
	r := ring.New(10, reach, 6)
	var b int64
	cost := func(step int64) time.Duration {
		best := time.Duration(math.MaxInt64)
		for range 5 { // the best one is disturbed least
			began := time.Now()
			for range advances {
				b += step
				r.Advance(b, []int64{b, 0, 0, 0, 0, 0})
				if got := r.Row(b - reach/2)[0].Load(); got != b && step > reach {
					t.Fatalf("after a step of %d buckets the window begins at %d, want %d", step, got, b)
				}
			}
			best = min(best, time.Since(began))
		}
		return best
	}
	steps := cost(1)
	require.Less(t, cost(reach+7), 50*steps, "2,000 steps take %v", steps)
}
