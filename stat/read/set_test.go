package read_test

import (
	"runtime"
	"testing"
	"time"
	"weak"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/instrument"
	"github.com/weir-go/weir/stat"
	"github.com/weir-go/weir/stat/read"
)

type metrics = map[string]float64

const (
	slowCallsA = "weir.breaker.slow_calls{a,}"
	slowCallsB = "weir.breaker.slow_calls{b,}"
)

var queueLength = &stat.Instrument{Name: "shop.queue.length", Unit: "{order}", Help: "Orders that wait.", Kind: stat.UpDown}

// sourceOfInstrument returns a source with one series of an instrument.
func sourceOfInstrument(name string, kind stat.Kind, attrs ...string) stat.Source {
	i := &stat.Instrument{Name: name, Help: "Help.", Kind: kind, Attrs: attrs}
	return newFakeSource(point{i.Series(make([]string, len(attrs))...), 1})
}

// sourceOfSeries returns a source with the series, which may be nil.
func sourceOfSeries(list ...*stat.Series) stat.Source {
	f := &fakeSource{}
	for _, s := range list {
		f.points = append(f.points, point{s, 1})
	}
	return f
}

// refusedSources are sources that cannot be in one set, and the error of New.
var refusedSources = map[string]struct {
	sources []stat.Source
	want    string
}{
	"two of one name": {
		[]stat.Source{newFakeSource(slowCallsPoint("a", 1)), newFakeSource(slowCallsPoint("b", 2)), newFakeSource(slowCallsPoint("a", 3))},
		`stat: two different series are weir.breaker.slow_calls{weir.breaker.name="a", weir.group.key=""}: each source needs a name of its own`,
	},
	"one source with one name twice": {
		[]stat.Source{newFakeSource(slowCallsPoint("a", 1), slowCallsPoint("a", 3))},
		`stat: two different series are weir.breaker.slow_calls{weir.breaker.name="a", weir.group.key=""}: each source needs a name of its own`,
	},
	"two sources of one name with several series": {
		[]stat.Source{
			sourceOfSeries(instrument.BreakerState.Series("a", "open", ""), instrument.BreakerState.Series("a", "closed", "")),
			sourceOfSeries(instrument.BreakerState.Series("a", "open", ""), instrument.BreakerState.Series("a", "closed", "")),
		},
		`stat: two different series are weir.breaker.state{weir.breaker.name="a", weir.breaker.state="open", weir.group.key=""}: ` +
			`each source needs a name of its own (and 1 more series with faults)`,
	},
	"names that differ in bad bytes alone": {
		[]stat.Source{
			sourceOfSeries(&stat.Series{Instrument: instrument.BreakerSlowCalls, Values: []string{"\xff", ""}}),
			sourceOfSeries(&stat.Series{Instrument: instrument.BreakerSlowCalls, Values: []string{"\xfe", ""}}),
		},
		"stat: two different series are weir.breaker.slow_calls{weir.breaker.name=\"\uFFFD\", weir.group.key=\"\"}: each source needs a name of its own",
	},
	"the set's own": {
		[]stat.Source{sourceOfSeries(instrument.ExporterSourcePanics.Series())},
		`stat: two different series are weir.exporter.source_panics{}: each source needs a name of its own`,
	},
	"nil":           {[]stat.Source{newFakeSource(), nil}, `stat: source 2 of 2 is nil`},
	"nil series":    {[]stat.Source{sourceOfSeries(nil)}, `stat: a series has no instrument`},
	"no instrument": {[]stat.Source{sourceOfSeries(&stat.Series{})}, `stat: a series has no instrument`},
	"too few values": {
		[]stat.Source{sourceOfSeries(&stat.Series{Instrument: instrument.BreakerCalls, Values: []string{"a"}})},
		`stat: a series of weir.breaker.calls has 1 values for 3 attributes`,
	},
	"no name": {[]stat.Source{sourceOfInstrument("", stat.Gauge)}, `stat: an instrument has no name`},
	"no kind": {
		[]stat.Source{sourceOfInstrument("shop.x", "")},
		`stat: the instrument shop.x has the kind "", must be "counter", "up-down counter", "gauge" or "distribution"`,
	},
	"an attribute twice": {
		[]stat.Source{sourceOfInstrument("shop.x", stat.Gauge, "a", "b", "a")},
		`stat: the instrument shop.x has an attribute twice: ["a" "b" "a"]`,
	},
	"a distribution by Observe": {
		[]stat.Source{sourceOfInstrument("shop.x", stat.Distribution)},
		`stat: a series of shop.x came by the wrong method: distributions come by Histograms, all others by Observe`,
	},
	"a counter by Histograms": {
		[]stat.Source{&histogramSource{spreads: []seriesHistogram{{instrument.BreakerSlowCalls.Series("a", ""), stat.Histogram{}}}}},
		`stat: a series of weir.breaker.slow_calls came by the wrong method: distributions come by Histograms, all others by Observe`,
	},
	"two distributions of one name": {
		[]stat.Source{newHistogramSource(durationsOf("a", 1)), newHistogramSource(durationsOf("a", 1))},
		`stat: two different series are weir.breaker.call.duration{weir.breaker.name="a", weir.group.key=""}: each source needs a name of its own`,
	},
	"bounds of a gauge": {
		[]stat.Source{sourceOfSeries((&stat.Instrument{Name: "shop.x", Kind: stat.Gauge, Bounds: []float64{1}}).Series())},
		`stat: the instrument shop.x has bounds and is a gauge, must be a distribution`,
	},
	"bounds that do not ascend": {
		[]stat.Source{newHistogramSource(seriesHistogram{(&stat.Instrument{Name: "shop.x", Kind: stat.Distribution, Bounds: []float64{1, 1}}).Series(), stat.Histogram{}})},
		`stat: the instrument shop.x has the bounds [1 1], must be finite and ascend from above 0`,
	},
	"one name, two kinds": {
		[]stat.Source{sourceOfInstrument("shop.x", stat.Gauge), sourceOfInstrument("shop.x", stat.Counter)},
		`stat: the instrument shop.x is not one of those that the set was made with`,
	},
	"one name, two units": {
		[]stat.Source{
			sourceOfSeries(queueLength.Series()),
			sourceOfSeries((&stat.Instrument{Name: queueLength.Name, Kind: stat.UpDown}).Series()),
		},
		`stat: the instrument shop.queue.length is not one of those that the set was made with`,
	},
	"one name, other attributes": {
		[]stat.Source{sourceOfInstrument("shop.x", stat.Gauge, "a"), sourceOfInstrument("shop.x", stat.Gauge, "b")},
		`stat: the instrument shop.x is not one of those that the set was made with`,
	},
	"a name that weir uses": {
		[]stat.Source{sourceOfInstrument("weir.breaker.calls", stat.Counter)},
		`stat: the instrument weir.breaker.calls is not one of those that the set was made with`,
	},
}

func TestNewSetRefuses(t *testing.T) {
	for what, c := range refusedSources {
		t.Run(what, func(t *testing.T) {
			s, err := read.New(seriesText, c.sources...)
			require.EqualError(t, err, c.want)
			require.Nil(t, s)
		})
	}
}

func TestInstrumentsOfASet(t *testing.T) {
	s := newSet(t, newFakeSource(slowCallsPoint("a", 1)), newFakeSource(point{queueLength.Series(), 4}))
	want := append(instrument.All(), queueLength)
	require.Equal(t, want, s.Instruments())
	s.Instruments()[0] = nil
	require.Equal(t, want, s.Instruments(), "the caller owns the list")
}

func TestEqualInstrumentsAreOne(t *testing.T) {
	stock := &stat.Instrument{Name: "shop.stock", Kind: stat.Gauge, Attrs: []string{"item"}}
	twin := *stock
	seen := map[*stat.Instrument]int{}
	s, err := read.New(func(s *stat.Series) *stat.Instrument { return s.Instrument },
		newFakeSource(point{stock.Series("nut"), 1}), newFakeSource(point{twin.Series("bolt"), 2}))
	require.NoError(t, err)
	for i := range s.Observe {
		seen[i]++
	}
	require.Equal(t, 2, seen[stock])
	for i := range seen {
		require.Contains(t, s.Instruments(), i)
	}
}

func TestASeriesIsFormedOnceWhileItIsLive(t *testing.T) {
	made := metrics{}
	source := newFakeSource(slowCallsPoint("a", 1))
	a := source.points[0]
	s, err := read.New(func(s *stat.Series) string {
		made[seriesText(s)]++
		return seriesText(s)
	}, source)
	require.NoError(t, err)
	require.Empty(t, made, "New must not call form: what it needs may not exist yet")
	for range 3 {
		readAll(t, s)
	}
	require.Equal(t, 1.0, made[slowCallsA])
	source.setPoints()
	readAll(t, s)
	source.setPoints(a)
	readAll(t, s)
	require.Equal(t, 2.0, made[slowCallsA])
}

func TestFormGetsValidTextAndCreated(t *testing.T) {
	began := time.Date(2026, 9, 1, 0, 0, 0, 0, time.UTC)
	odd := &stat.Series{Instrument: instrument.BreakerSlowCalls, Values: []string{"a\xffb", ""}, Created: began}
	s, err := read.New(func(s *stat.Series) *stat.Series { return s }, newFakeSource(point{odd, 1}))
	require.NoError(t, err)
	var got []*stat.Series
	for s := range s.Observe {
		got = append(got, s)
	}
	require.Equal(t, &stat.Series{Instrument: instrument.BreakerSlowCalls, Values: []string{"a\uFFFDb", ""}, Created: began}, got[0])
}

func TestTheMetricsOfTheSetComeLast(t *testing.T) {
	var names []string
	for name := range newSet(t, newFakeSource(slowCallsPoint("a", 1))).Observe {
		names = append(names, name)
	}
	require.Equal(t, []string{
		slowCallsA, "weir.exporter.source_panics{}", "weir.exporter.skipped_samples{duplicate}",
		"weir.exporter.skipped_samples{unknown}", "weir.exporter.skipped_samples{malformed}",
	}, names)
}

func TestASeriesThatIsNoLongerYieldedIsForgotten(t *testing.T) {
	source := newFakeSource(slowCallsPoint("a", 1), slowCallsPoint("b", 2))
	s := newSet(t, source)
	readAll(t, s)
	gone := weak.Make(source.points[0].series)
	source.setPoints(source.points[1])
	got, _ := readAll(t, s)
	require.Equal(t, metrics{slowCallsB: 2}, got)
	runtime.GC()
	require.Nil(t, gone.Value(), "the set must not keep a series that is no longer shown")
}
