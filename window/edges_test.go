package window_test

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/stat"
	"github.com/weir-go/weir/window"
)

func TestTheSpanIsRoundedUpToWholeBuckets(t *testing.T) {
	c := window.Config{Span: time.Second + 1, Buckets: 10}
	require.Equal(t, time.Second+10, window.NewCounterAt(c, t0).Span())
	require.Equal(t, time.Second+10, window.NewViewAt(c, t0).Span())
}

func TestRateIsTheSumPerSecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := window.NewCounter(window.Config{Span: 4 * time.Second, Buckets: 4})
		c.Add(6)
		time.Sleep(time.Second)
		c.Add(4)
		require.InDelta(t, 2.5, c.Rate(), 0)
		time.Sleep(3 * time.Second)
		require.InDelta(t, 1, c.Rate(), 0)
	})
}

func TestSeriesAreCreatedWithTheWindow(t *testing.T) {
	n := window.NewCallsAt(window.CallsConfig{Name: "queue"}, t0)
	for line := range n.Observe {
		if line.Instrument.Kind == stat.Counter {
			require.Equal(t, t0, line.Created, line.Instrument.Name)
		}
	}
}

func TestTheDefaultSpanIsInTheMetrics(t *testing.T) {
	seen := readMetrics(t, window.NewCalls(window.CallsConfig{Name: "queue"}))
	require.InDelta(t, 10, seen["weir.window.length"], 0)
	require.InDelta(t, 0, seen["weir.window.coverage"], 0.01)
}

func TestQuantileInterpolatesWithinItsBucket(t *testing.T) {
	c := newTimedCalls(time.Second)
	for range 10 {
		recordSuccesses(c, 10*time.Millisecond)
	}
	for range 100 {
		recordSuccesses(c, time.Second) // the bucket from 2^(-1/8) to 1 s
	}
	l := c.LatencyAt(t0)
	for _, share := range []float64{0.25, 0.5, 0.75, 1} {
		q := (10 + 100*share) / 110
		require.InDelta(t, math.Exp2((share-1)/8), l.Quantile(q).Seconds(), 1e-6, "a share of %v of the upper bucket", share)
	}
}

func TestPlusAddsUnderAndOver(t *testing.T) {
	a, b := newTimedCalls(time.Second), newTimedCalls(time.Second)
	recordSuccesses(a, 0, 2*time.Hour)
	recordSuccesses(b, 0, 0, 3*time.Hour, 3*time.Hour, 3*time.Hour)
	sum := a.LatencyAt(t0).Plus(b.LatencyAt(t0))
	require.Equal(t, int64(3), sum.Under)
	require.Equal(t, int64(4), sum.Over)
	require.Equal(t, 3*time.Hour, sum.Max)
}

func TestViewCountsEveryNumber(t *testing.T) {
	v := window.NewViewAt(window.Config{Span: 10 * time.Second, Buckets: 10, Edge: window.Interpolated}, t0)
	v.SampleAt(t0, window.Totals{})
	all := window.Totals{Successes: 2, Failures: 4, Slow: 6, SlowFailures: 8, Ignored: 10, Refused: 12, ConsecutiveFailures: 3}
	v.SampleAt(t0.Add(500*time.Millisecond), all)
	require.Equal(t, window.Counts(all), v.CountsAt(t0.Add(9*time.Second)))
	half := window.Counts{Successes: 1, Failures: 2, Slow: 3, SlowFailures: 4, Ignored: 5, Refused: 6, ConsecutiveFailures: 3}
	require.Equal(t, half, v.CountsAt(t0.Add(10*time.Second+500*time.Millisecond)))
	v.SampleAt(t0.Add(12*time.Second), all)
	more := window.Totals{Successes: 3, Failures: 5, Slow: 7, SlowFailures: 9, Ignored: 11, Refused: 13}
	v.SampleAt(t0.Add(12*time.Second), more)
	require.Equal(t, window.Counts{Successes: 1, Failures: 1, Slow: 1, SlowFailures: 1, Ignored: 1, Refused: 1}, v.CountsAt(t0.Add(13*time.Second)))
}

func TestTheLongestDurationIsWithinTheBuckets(t *testing.T) {
	c := newTimedCalls(time.Second)
	recordSuccesses(c, 4096*time.Second)
	l := c.LatencyAt(t0)
	require.Zero(t, l.Over)
	recordSuccesses(c, 4096*time.Second+1)
	l = c.LatencyAt(t0)
	require.Equal(t, int64(1), l.Over)
	require.Equal(t, int64(2), l.Counts[window.LatencyBuckets-1])
}

// TestLatencyMovesByTheCoarserOfTwelfthsAndBuckets records a call and reads the latency later.
func TestLatencyMovesByTheCoarserOfTwelfthsAndBuckets(t *testing.T) {
	const span = 12 * time.Second
	for _, step := range []struct {
		buckets  int
		at, look time.Duration
		want     int64
	}{
		{120, 500 * time.Millisecond, span - 1, 1},
		{120, 500 * time.Millisecond, span, 0},
		{12, time.Second - 1, span, 0},
		{12, time.Second, span, 1},
		{3, 3 * time.Second, span - 1, 1},
		{3, 3 * time.Second, span, 0},
		{3, 4 * time.Second, span, 1},
	} {
		c := window.NewCallsAt(window.CallsConfig{Span: span, Buckets: step.buckets, Latency: true}, t0)
		c.RecordAt(t0.Add(step.at), window.Success, time.Second)
		l := c.LatencyAt(t0.Add(step.look))
		require.Equal(t, step.want, l.Count(), "%d buckets, a call at %v, seen from %v", step.buckets, step.at, step.look)
	}
}
