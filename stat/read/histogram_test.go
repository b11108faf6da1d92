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

// spread is a series and its current histogram.
type spread struct {
	series    *stat.Series
	histogram stat.Histogram
}

// timed is a source with histograms.
type timed struct {
	fake
	spreads []spread
	hurt    any
}

func (s *timed) Histograms(yield func(*stat.Series, stat.Histogram) bool) {
	for _, one := range s.spreads {
		if !yield(one.series, one.histogram) {
			return
		}
	}
	if s.hurt != nil {
		panic(s.hurt)
	}
}

func times(spreads ...spread) *timed { return &timed{spreads: spreads} }

// durationsOf returns a spread of n calls of one second.
func durationsOf(name string, calls int64) spread {
	return spread{instrument.BreakerCallDuration.Series(name, ""), stat.Histogram{Schema: 3, Counts: []int64{calls}, Sum: float64(calls)}}
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
	tookA = "weir.breaker.call.duration{a,}"
	tookB = "weir.breaker.call.duration{b,}"
)

func TestHistogramsAreAddedAndRemoved(t *testing.T) {
	a, b := times(durationsOf("a", 3)), times(durationsOf("b", 5))
	a.points = []point{slow("a", 1)}
	s := newSet(t, a, shows(slow("b", 2)), a)
	for range 3 {
		require.Equal(t, map[string]int64{tookA: 3}, readHistograms(t, s))
		got, own := readAll(t, s)
		require.Equal(t, metrics{lineA: 1, lineB: 2}, got)
		require.Empty(t, own)
	}
	require.NoError(t, s.Add(b))
	require.ErrorContains(t, s.Add(times(durationsOf("a", 9))), "two different series are weir.breaker.call.duration")
	require.Equal(t, map[string]int64{tookA: 3, tookB: 5}, readHistograms(t, s))
	s.Remove(a)
	require.NoError(t, s.Add(times(durationsOf("a", 9))), "the name is free again")
	require.Equal(t, map[string]int64{tookA: 9, tookB: 5}, readHistograms(t, s))
	b.spreads = nil
	require.Equal(t, map[string]int64{tookA: 9}, readHistograms(t, s))
	_, own := readAll(t, s)
	require.Empty(t, own)
}

func TestInvalidHistogramsAreSkipped(t *testing.T) {
	good := durationsOf("a", 1)
	source := times(good)
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
		source.spreads = []spread{{instrument.BreakerCallDuration.Series("b", ""), h}, good}
		require.Equal(t, map[string]int64{tookA: 1}, readHistograms(t, s), "%.200v", h)
		want++
		_, own := readAll(t, s)
		require.Equal(t, metrics{"skipped_samples{malformed}": want}, own, "%.200v", h)
	}
	source.spreads = []spread{durationsOf("a", 7), {instrument.BreakerSlowCalls.Series("a", ""), stat.Histogram{}}, good, {nil, stat.Histogram{}}}
	require.Equal(t, map[string]int64{tookA: 1}, readHistograms(t, s), "the first owner stays")
	_, own := readAll(t, s)
	require.Equal(t, metrics{"skipped_samples{malformed}": want + 2, "skipped_samples{duplicate}": 1}, own)
}

func TestASourceThatPanicsOverItsHistogramsHidesNoOther(t *testing.T) {
	log := captureLog(t)
	bad := times(durationsOf("a", 1))
	bad.points = []point{slow("a", 1)}
	s := newSet(t, bad, times(durationsOf("b", 2)))
	bad.hurt = errors.New("lost its buckets")
	require.Equal(t, map[string]int64{tookA: 1, tookB: 2}, readHistograms(t, s))
	got, own := readAll(t, s)
	require.Equal(t, metrics{lineA: 1}, got)
	require.Equal(t, metrics{"source_panics{}": 1}, own)
	require.Contains(t, log.String(), "lost its buckets")
}

func TestReadingHistogramsAllocatesNothing(t *testing.T) {
	for _, c := range []struct {
		sources []stat.Source
		each    int64
	}{{breakers(100), 0}, {[]stat.Source{times(durationsOf("a", 1), durationsOf("b", 2))}, 3}} {
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
