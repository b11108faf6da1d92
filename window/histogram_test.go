package window_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/window"
)

// latencyOf returns the latency of calls with the given durations.
func latencyOf(t *testing.T, took ...time.Duration) window.Latency {
	t.Helper()
	start := time.Now()
	w := window.NewCallsAt(window.CallsConfig{Latency: true}, start)
	for _, d := range took {
		w.RecordAt(start, window.Success, d)
	}
	return w.LifetimeLatency()
}

func TestHistogramCountsEveryCallInItsBucket(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	took := []time.Duration{0, 1, 953, 954, 2 * time.Hour}
	for range 5000 {
		took = append(took, time.Duration(rnd.Int64N(int64(4096*time.Second))>>rnd.IntN(40)))
	}
	l := latencyOf(t, took...)
	h := l.Histogram()
	require.EqualValues(t, len(took), h.Count())
	require.Equal(t, l.Sum, h.Sum)
	require.Equal(t, 7200.0, h.Max)
	require.NotZero(t, h.Counts[0])
	require.NotZero(t, h.Counts[len(h.Counts)-1])

	var bounds []float64
	for exp := -20; exp < 12; exp++ {
		bounds = append(bounds, math.Ldexp(1, exp))
	}
	for bound, n := range h.Below(bounds) {
		want := int64(0)
		for _, d := range took {
			if d.Seconds() <= bound {
				want++
			}
		}
		require.Equal(t, want, n, "up to %v s", bound)
	}
}

func TestHistogramHasNoEmptyBucketsAtItsEnds(t *testing.T) {
	l := latencyOf(t, time.Second, 1100*time.Millisecond)
	h := l.Histogram()
	require.Equal(t, []int64{1, 0, 1}, h.Counts)
	require.Equal(t, 0, h.Offset, "a second is the bound of bucket 0")
	for _, l := range []window.Latency{{}, latencyOf(t, 1, 2)} {
		h := l.Histogram()
		require.Empty(t, h.Counts)
		require.Equal(t, l.Count(), h.Zero)
		require.Equal(t, math.Ldexp(1, -20), h.ZeroThreshold)
	}
	l.Under = 5 // as if read later than Counts
	h = l.Histogram()
	require.EqualValues(t, 2, h.Count())
}
