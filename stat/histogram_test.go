package stat_test

import (
	"maps"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/stat"
)

// histogramOf returns a histogram of the values by its definition: bucket i ends at base^i.
func histogramOf(schema int, values []float64) (h stat.Histogram) {
	perPower := math.Exp2(float64(schema))
	h.Schema, h.Offset = schema, int(math.Ceil(-30*perPower))
	h.Counts = make([]int64, int(60*perPower)+2)
	for _, v := range values {
		h.Counts[int(math.Ceil(math.Log2(v)*perPower))-h.Offset]++
		h.Sum += v
		h.Max = max(h.Max, v)
	}
	return h
}

func TestBelowCountsValuesUpToEachBound(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for schema := -4; schema <= 8; schema++ {
		values := []float64{0.25, 1, 8} // a bound belongs to the bucket below it
		for range 2000 {
			values = append(values, math.Exp2(rnd.Float64()*40-20))
		}
		h := histogramOf(schema, values)
		h.Zero = 3
		require.EqualValues(t, len(values)+3, h.Count())
		var bounds []float64
		for exp := -22; exp <= 22; exp++ {
			if schema >= 0 || exp%(1<<-schema) == 0 {
				bounds = append(bounds, math.Ldexp(1, exp))
			}
		}
		n := 0
		for bound, count := range h.Below(bounds) {
			require.Equal(t, bounds[n], bound)
			n++
			want := int64(3)
			for _, v := range values {
				if v <= bound {
					want++
				}
			}
			require.Equal(t, want, count, "schema %d, up to %v", schema, bound)
		}
		require.Len(t, bounds, n)
	}
}

func TestABoundInsideABucketIsMovedDown(t *testing.T) {
	h := stat.Histogram{Schema: 0, Offset: 1, Counts: []int64{1, 2, 4}} // up to 2, 4 and 8
	got := maps.Collect(h.Below([]float64{1, 3.9, 5, 7.9, 8.1, 1000}))
	require.Equal(t, map[float64]int64{1: 0, 3.9: 1, 5: 3, 7.9: 3, 8.1: 7, 1000: 7}, got)
	for range h.Below([]float64{1, 2}) {
		break
	}
}
