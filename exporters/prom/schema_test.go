package prom_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/latency"
)

// nativeBucketCounts records values in a native histogram of Prometheus and returns the counts of
// its buckets.
func nativeBucketCounts(t *testing.T, values []float64) map[int]int64 {
	t.Helper()
	h := prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: "h", Help: "h.", NativeHistogramBucketFactor: math.Exp2(1.0 / 8), NativeHistogramZeroThreshold: prometheus.NativeHistogramZeroThresholdZero,
	})
	for _, v := range values {
		h.Observe(v)
	}
	var m dto.Metric
	require.NoError(t, h.Write(&m))
	require.Equal(t, int32(latency.Schema), m.Histogram.GetSchema())
	counts, index, count := map[int]int64{}, 0, int64(0)
	deltas := m.Histogram.GetPositiveDelta()
	for _, span := range m.Histogram.GetPositiveSpan() {
		index += int(span.GetOffset())
		for range span.GetLength() {
			count += deltas[0]
			deltas = deltas[1:]
			if count > 0 {
				counts[index] = count
			}
			index++
		}
	}
	return counts
}

// countsByIndex returns how many values latency.Index puts into each bucket.
func countsByIndex(values []float64) map[int]int64 {
	counts := map[int]int64{}
	for _, v := range values {
		counts[latency.Index(v)]++
	}
	return counts
}

// TestIndexEqualsPrometheusBucket compares the bucket index of 300,000 values with that of
// Prometheus' native histogram: durations from a nanosecond to 292 years, and other positive
// float64s.
func TestIndexEqualsPrometheusBucket(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 3 {
		values := make([]float64, 0, 110_000)
		for range cap(values) / 2 {
			values = append(values, float64(rnd.Int64N(math.MaxInt64)>>rnd.IntN(62)+1)/1e9)
			if v := math.Float64frombits(rnd.Uint64() >> 1); v > 0 && !math.IsInf(v, 0) && !math.IsNaN(v) {
				values = append(values, v)
			}
		}
		require.GreaterOrEqual(t, len(values), 100_000)
		require.Equal(t, nativeBucketCounts(t, values), countsByIndex(values))
	}
}

// TestIndexEqualsPrometheusBucketAtEveryBound compares every bound of the schema and the float64s
// next to it.
func TestIndexEqualsPrometheusBucketAtEveryBound(t *testing.T) {
	for i := latency.Lowest - 1; i <= latency.Lowest+latency.Buckets; i++ {
		bound := latency.Bound(i)
		for _, v := range []float64{math.Nextafter(bound, 0), bound, math.Nextafter(bound, math.Inf(1))} {
			require.Equal(t, nativeBucketCounts(t, []float64{v}), countsByIndex([]float64{v}), "%v", v)
		}
	}
}
