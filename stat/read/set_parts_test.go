package read_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/stat"
)

// wholeSource is a source that consists of parts, as a weirconfig.Set does.
type wholeSource struct {
	histogramSource
	parts []stat.Source
	fault any // Sources panics with it
}

func (w *wholeSource) Sources() []stat.Source {
	if w.fault != nil {
		panic(w.fault)
	}
	return slices.Clone(w.parts)
}

func newWholeSource(parts ...stat.Source) *wholeSource {
	w := &wholeSource{parts: parts}
	w.points = []point{slowCallsPoint("whole", 1)}
	return w
}

const slowCallsWhole = "weir.breaker.slow_calls{whole,}"

func TestThePartsOfASourceMayChange(t *testing.T) {
	a, b := newHistogramSource(durationsOf("a", 3)), newHistogramSource(durationsOf("b", 5))
	a.points, b.points = []point{slowCallsPoint("a", 2)}, []point{slowCallsPoint("b", 3)}
	other := newWholeSource(newFakeSource(slowCallsPoint("part of a part", 9)))
	other.points = []point{slowCallsPoint("other", 4)}
	w := newWholeSource(a)
	s := newSet(t, w)
	for _, step := range []struct {
		when  string
		parts []stat.Source
		want  metrics
		calls map[string]int64
	}{
		{"one", []stat.Source{a}, metrics{slowCallsA: 2}, map[string]int64{durationA: 3}},
		{"two", []stat.Source{a, b}, metrics{slowCallsA: 2, slowCallsB: 3}, map[string]int64{durationA: 3, durationB: 5}},
		{"the other alone", []stat.Source{b}, metrics{slowCallsB: 3}, map[string]int64{durationB: 5}},
		{"itself", []stat.Source{w, a, w}, metrics{slowCallsA: 2}, map[string]int64{durationA: 3}},
		{"nil and twice", []stat.Source{nil, a, a}, metrics{slowCallsA: 2}, map[string]int64{durationA: 3}},
		{"a whole", []stat.Source{other}, metrics{"weir.breaker.slow_calls{other,}": 4}, map[string]int64{}},
		{"none", nil, metrics{}, map[string]int64{}},
	} {
		w.parts = step.parts
		step.want[slowCallsWhole] = 1
		require.Equal(t, step.calls, readHistograms(t, s), step.when)
		got, own := readAll(t, s)
		require.Equal(t, step.want, got, step.when)
		require.Empty(t, own, step.when)
	}
	w.parts = []stat.Source{a}
	s.Remove(w)
	got, _ := readAll(t, s)
	require.Empty(t, got, "the parts go with the source")
}

func TestPartsMayHaveEachOther(t *testing.T) {
	one, other := newWholeSource(), newWholeSource()
	other.points = []point{slowCallsPoint("other", 4)}
	one.parts, other.parts = []stat.Source{other, one}, []stat.Source{one, other}
	s := newSet(t, one, other, one)
	got, own := readAll(t, s)
	require.Equal(t, metrics{slowCallsWhole: 1, "weir.breaker.slow_calls{other,}": 4}, got)
	require.Empty(t, own)
}

func TestFaultsOfPartsHarmNoOtherSource(t *testing.T) {
	log := captureLog(t)
	a, c := newFakeSource(slowCallsPoint("a", 2)), newFakeSource(slowCallsPoint("c", 5))
	w := newWholeSource(a)
	s := newSet(t, w, c)
	const slowCallsC = "weir.breaker.slow_calls{c,}"
	broken := newFakeSource(slowCallsPoint("b", 3))
	broken.broken = "broken part"
	for _, step := range []struct {
		when      string
		parts     []stat.Source
		fault     any
		want, own metrics
	}{
		{"equal names", []stat.Source{a, newFakeSource(slowCallsPoint("a", 9))}, nil, metrics{slowCallsA: 2}, metrics{"skipped_samples{duplicate}": 1}},
		{"unknown", []stat.Source{a, newFakeSource(point{queueLength.Series(), 1})}, nil, metrics{slowCallsA: 2}, metrics{"skipped_samples{unknown}": 1}},
		{"Sources panics", []stat.Source{a}, "broken whole", metrics{}, metrics{"source_panics{}": 1}},
		{"a part panics", []stat.Source{broken, a}, nil, metrics{slowCallsB: 3, slowCallsA: 2}, metrics{"source_panics{}": 1}},
		{"well again", []stat.Source{a}, nil, metrics{slowCallsA: 2}, metrics{}},
	} {
		_, before := readAll(t, s)
		w.parts, w.fault = step.parts, step.fault
		got, after := readAll(t, s)
		step.want[slowCallsWhole], step.want[slowCallsC] = 1, 5
		require.Equal(t, step.want, got, step.when)
		maps.DeleteFunc(after, func(name string, _ float64) bool {
			after[name] -= before[name]
			return after[name] == 0
		})
		require.Equal(t, step.own, after, step.when)
		w.parts, w.fault = []stat.Source{a}, nil
	}
	require.Contains(t, log.String(), "broken whole")
	require.NotContains(t, log.String(), "broken part", "only the first panic is logged")
}

func TestAddChecksTheParts(t *testing.T) {
	s := newSet(t, newFakeSource(slowCallsPoint("a", 1)))
	w := newWholeSource(newFakeSource(slowCallsPoint("a", 2)))
	require.ErrorContains(t, s.Add(w), "two different series are weir.breaker.slow_calls")
	w.parts = []stat.Source{newFakeSource(slowCallsPoint("b", 2))}
	require.NoError(t, s.Add(w))
	require.ErrorContains(t, s.Add(newFakeSource(slowCallsPoint("b", 3))), "two different series are")
	w.parts = nil
	require.NoError(t, s.Add(newFakeSource(slowCallsPoint("b", 3))), "the name is free again")
	got, own := readAll(t, s)
	require.Equal(t, metrics{slowCallsA: 1, slowCallsB: 3, slowCallsWhole: 1}, got)
	require.Empty(t, own)
}

func TestAReadingThatWasStoppedReadsNoPart(t *testing.T) {
	a := newFakeSource(slowCallsPoint("a", 2))
	s := newSet(t, newWholeSource(a))
	readAll(t, s) // a new series is yielded after all sources were read
	before := a.reads
	for range s.Observe {
		break
	}
	require.Equal(t, before, a.reads)
}
