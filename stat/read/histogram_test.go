package read_test

import (
	"errors"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/instrument"
	"github.com/weir-go/weir/stat"
	"github.com/weir-go/weir/stat/read"
)

// seriesHistogram is a series and its current histogram.
type seriesHistogram struct {
	series    *stat.Series
	histogram stat.Histogram
}

// histogramSource is a source with histograms.
type histogramSource struct {
	fakeSource
	spreads []seriesHistogram
	hurt    any
}

func (s *histogramSource) Histograms(yield func(*stat.Series, stat.Histogram) bool) {
	for _, one := range s.spreads {
		if !yield(one.series, one.histogram) {
			return
		}
	}
	if s.hurt != nil {
		panic(s.hurt)
	}
}

func newHistogramSource(spreads ...seriesHistogram) *histogramSource {
	return &histogramSource{spreads: spreads}
}

// durationsOf returns a histogram of n calls of one second.
func durationsOf(name string, calls int64) seriesHistogram {
	return seriesHistogram{
		instrument.BreakerCallDuration.Series(name, ""),
		stat.Histogram{Schema: 3, Counts: []int64{calls}, Sum: float64(calls)},
	}
}

// readHistograms reads the histograms of the set once and returns the number of values in each.
func readHistograms(t *testing.T, s *read.Set[string]) map[string]int64 {
	t.Helper()
	got := map[string]int64{}
	for name, h := range s.Histograms {
		require.NotContains(t, got, name, "yielded twice")
		got[name] = h.Count()
	}
	return got
}

const (
	durationA = "weir.breaker.call.duration{a,}"
	durationB = "weir.breaker.call.duration{b,}"
)

func TestHistogramsAreAddedAndRemoved(t *testing.T) {
	a, b := newHistogramSource(durationsOf("a", 3)), newHistogramSource(durationsOf("b", 5))
	a.points = []point{slowCallsPoint("a", 1)}
	s := newSet(t, a, newFakeSource(slowCallsPoint("b", 2)), a)
	for range 3 {
		require.Equal(t, map[string]int64{durationA: 3}, readHistograms(t, s))
		got, own := readAll(t, s)
		require.Equal(t, metrics{slowCallsA: 1, slowCallsB: 2}, got)
		require.Empty(t, own)
	}
	require.NoError(t, s.Add(b))
	require.ErrorContains(t, s.Add(newHistogramSource(durationsOf("a", 9))), "two different series are weir.breaker.call.duration")
	require.Equal(t, map[string]int64{durationA: 3, durationB: 5}, readHistograms(t, s))
	s.Remove(a)
	require.NoError(t, s.Add(newHistogramSource(durationsOf("a", 9))), "the name is free again")
	require.Equal(t, map[string]int64{durationA: 9, durationB: 5}, readHistograms(t, s))
	b.spreads = nil
	require.Equal(t, map[string]int64{durationA: 9}, readHistograms(t, s))
	_, own := readAll(t, s)
	require.Empty(t, own)
}

func TestInvalidHistogramsAreSkipped(t *testing.T) {
	good := durationsOf("a", 1)
	source := newHistogramSource(good)
	s := newSet(t, source)
	want := 0.0
	for _, h := range []stat.Histogram{
		{Schema: -5},
		{Schema: 9},
		{Counts: []int64{1, -1}},
		{Zero: -1},
		{ZeroThreshold: -1},
		{ZeroThreshold: math.NaN()},
		{ZeroThreshold: math.Inf(1)},
		{Offset: math.MinInt},
		{Offset: math.MaxInt},
		{Counts: make([]int64, 600_001)},
	} {
		source.spreads = []seriesHistogram{{instrument.BreakerCallDuration.Series("b", ""), h}, good}
		require.Equal(t, map[string]int64{durationA: 1}, readHistograms(t, s), "%.200v", h)
		want++
		_, own := readAll(t, s)
		require.Equal(t, metrics{"skipped_samples{malformed}": want}, own, "%.200v", h)
	}
	source.spreads = []seriesHistogram{durationsOf("a", 7), {instrument.BreakerSlowCalls.Series("a", ""), stat.Histogram{}}, good, {nil, stat.Histogram{}}}
	require.Equal(t, map[string]int64{durationA: 1}, readHistograms(t, s), "the first owner stays")
	_, own := readAll(t, s)
	require.Equal(t, metrics{"skipped_samples{malformed}": want + 2, "skipped_samples{duplicate}": 1}, own)
}

func TestASourceThatPanicsOverItsHistogramsHidesNoOther(t *testing.T) {
	log := captureLog(t)
	bad := newHistogramSource(durationsOf("a", 1))
	bad.points = []point{slowCallsPoint("a", 1)}
	s := newSet(t, bad, newHistogramSource(durationsOf("b", 2)))
	bad.hurt = errors.New("lost its buckets")
	require.Equal(t, map[string]int64{durationA: 1, durationB: 2}, readHistograms(t, s))
	got, own := readAll(t, s)
	require.Equal(t, metrics{slowCallsA: 1}, got)
	require.Equal(t, metrics{"source_panics{}": 1}, own)
	require.Contains(t, log.String(), "lost its buckets")
}

func TestReadingHistogramsAllocatesNothing(t *testing.T) {
	for _, c := range []struct {
		sources []stat.Source
		each    int64
	}{{breakers(100), 0}, {[]stat.Source{newHistogramSource(durationsOf("a", 1), durationsOf("b", 2))}, 3}} {
		s := newSet(t, c.sources...)
		calls := int64(0)
		count := func(_ string, h stat.Histogram) bool {
			calls += h.Count()
			return true
		}
		allocs := testing.AllocsPerRun(20, func() { s.Histograms(count) })
		require.LessOrEqual(t, allocs, 4.0, "0, but a garbage collection may add a few")
		require.Equal(t, 21*c.each, calls)
	}
}
