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

type figures = map[string]float64

const (
	lineA = "weir.breaker.slow_calls{a,}"
	lineB = "weir.breaker.slow_calls{b,}"
)

var queueLength = &stat.Instrument{Name: "shop.queue.length", Unit: "{order}", Help: "Orders that wait.", Kind: stat.UpDown}

func TestNewSetRefuses(t *testing.T) {
	of := func(name string, kind stat.Kind, attrs ...string) stat.Source {
		i := &stat.Instrument{Name: name, Help: "Help.", Kind: kind, Attrs: attrs}
		return shows(point{i.Series(make([]string, len(attrs))...), 1})
	}
	bare := func(list ...*stat.Series) stat.Source {
		f := &fake{}
		for _, s := range list {
			f.points = append(f.points, point{s, 1})
		}
		return f
	}
	for what, c := range map[string]struct {
		sources []stat.Source
		want    string
	}{
		"two of one name": {
			[]stat.Source{shows(slow("a", 1)), shows(slow("b", 2)), shows(slow("a", 3))},
			`stat: two different series are weir.breaker.slow_calls{weir.breaker.name="a", weir.group.key=""}: each source needs a name of its own`,
		},
		"one source with one name twice": {
			[]stat.Source{shows(slow("a", 1), slow("a", 3))},
			`stat: two different series are weir.breaker.slow_calls{weir.breaker.name="a", weir.group.key=""}: each source needs a name of its own`,
		},
		"two sources of one name with several series": {
			[]stat.Source{
				bare(instrument.BreakerState.Series("a", "open", ""), instrument.BreakerState.Series("a", "closed", "")),
				bare(instrument.BreakerState.Series("a", "open", ""), instrument.BreakerState.Series("a", "closed", "")),
			},
			`stat: two different series are weir.breaker.state{weir.breaker.name="a", weir.breaker.state="open", weir.group.key=""}: ` +
				`each source needs a name of its own (and 1 more series with faults)`,
		},
		"names that differ in bad bytes alone": {
			[]stat.Source{
				bare(&stat.Series{Instrument: instrument.BreakerSlowCalls, Values: []string{"\xff", ""}}),
				bare(&stat.Series{Instrument: instrument.BreakerSlowCalls, Values: []string{"\xfe", ""}}),
			},
			"stat: two different series are weir.breaker.slow_calls{weir.breaker.name=\"\uFFFD\", weir.group.key=\"\"}: each source needs a name of its own",
		},
		"the set's own": {
			[]stat.Source{bare(instrument.ExporterSourcePanics.Series())},
			`stat: two different series are weir.exporter.source_panics{}: each source needs a name of its own`,
		},
		"nil":           {[]stat.Source{shows(), nil}, `stat: source 2 of 2 is nil`},
		"nil series":    {[]stat.Source{bare(nil)}, `stat: a series has no instrument`},
		"no instrument": {[]stat.Source{bare(&stat.Series{})}, `stat: a series has no instrument`},
		"too few values": {
			[]stat.Source{bare(&stat.Series{Instrument: instrument.BreakerCalls, Values: []string{"a"}})},
			`stat: a series of weir.breaker.calls has 1 values for 3 attributes`,
		},
		"no name": {[]stat.Source{of("", stat.Gauge)}, `stat: an instrument has no name`},
		"no kind": {
			[]stat.Source{of("shop.x", "")},
			`stat: the instrument shop.x has the kind "", must be "counter", "up-down counter", "gauge" or "distribution"`,
		},
		"an attribute twice": {
			[]stat.Source{of("shop.x", stat.Gauge, "a", "b", "a")},
			`stat: the instrument shop.x has an attribute twice: ["a" "b" "a"]`,
		},
		"a distribution by Observe": {
			[]stat.Source{of("shop.x", stat.Distribution)},
			`stat: a series of shop.x came by the wrong method: distributions come by Histograms, all others by Observe`,
		},
		"a counter by Histograms": {
			[]stat.Source{&timed{spreads: []spread{{instrument.BreakerSlowCalls.Series("a", ""), stat.Histogram{}}}}},
			`stat: a series of weir.breaker.slow_calls came by the wrong method: distributions come by Histograms, all others by Observe`,
		},
		"two distributions of one name": {
			[]stat.Source{times(took("a", 1)), times(took("a", 1))},
			`stat: two different series are weir.breaker.call.duration{weir.breaker.name="a", weir.group.key=""}: each source needs a name of its own`,
		},
		"bounds of a gauge": {
			[]stat.Source{bare((&stat.Instrument{Name: "shop.x", Kind: stat.Gauge, Bounds: []float64{1}}).Series())},
			`stat: the instrument shop.x has bounds and is a gauge, must be a distribution`,
		},
		"bounds that do not ascend": {
			[]stat.Source{times(spread{(&stat.Instrument{Name: "shop.x", Kind: stat.Distribution, Bounds: []float64{1, 1}}).Series(), stat.Histogram{}})},
			`stat: the instrument shop.x has the bounds [1 1], must be finite and ascend from above 0`,
		},
		"one name, two kinds": {
			[]stat.Source{of("shop.x", stat.Gauge), of("shop.x", stat.Counter)},
			`stat: the instrument shop.x is not one of those that the set was made with`,
		},
		"one name, two units": {
			[]stat.Source{bare(queueLength.Series()), bare((&stat.Instrument{Name: queueLength.Name, Kind: stat.UpDown}).Series())},
			`stat: the instrument shop.queue.length is not one of those that the set was made with`,
		},
		"one name, other attributes": {
			[]stat.Source{of("shop.x", stat.Gauge, "a"), of("shop.x", stat.Gauge, "b")},
			`stat: the instrument shop.x is not one of those that the set was made with`,
		},
		"a name of ours": {
			[]stat.Source{of("weir.breaker.calls", stat.Counter)},
			`stat: the instrument weir.breaker.calls is not one of those that the set was made with`,
		},
	} {
		t.Run(what, func(t *testing.T) {
			s, err := read.New(line, c.sources...)
			require.EqualError(t, err, c.want)
			require.Nil(t, s)
		})
	}
}

func TestInstrumentsOfASet(t *testing.T) {
	s := newSet(t, shows(slow("a", 1)), shows(point{queueLength.Series(), 4}))
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
		shows(point{stock.Series("nut"), 1}), shows(point{twin.Series("bolt"), 2}))
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
	made := figures{}
	source := shows(slow("a", 1))
	a := source.points[0]
	s, err := read.New(func(s *stat.Series) string {
		made[line(s)]++
		return line(s)
	}, source)
	require.NoError(t, err)
	require.Empty(t, made, "New must not call form: what it needs may not exist yet")
	for range 3 {
		readAll(t, s)
	}
	require.Equal(t, 1.0, made[lineA])
	source.show()
	readAll(t, s)
	source.show(a)
	readAll(t, s)
	require.Equal(t, 2.0, made[lineA])
}

func TestFormGetsValidTextAndCreated(t *testing.T) {
	began := time.Date(2026, 9, 1, 0, 0, 0, 0, time.UTC)
	odd := &stat.Series{Instrument: instrument.BreakerSlowCalls, Values: []string{"a\xffb", ""}, Created: began}
	s, err := read.New(func(s *stat.Series) *stat.Series { return s }, shows(point{odd, 1}))
	require.NoError(t, err)
	var got []*stat.Series
	for s := range s.Observe {
		got = append(got, s)
	}
	require.Equal(t, &stat.Series{Instrument: instrument.BreakerSlowCalls, Values: []string{"a\uFFFDb", ""}, Created: began}, got[0])
}

func TestASourceGivenTwiceCountsOnce(t *testing.T) {
	b := shows(slow("a", 3))
	gate := shows(b.points[0], point{instrument.LimiterRequests.Series("a", "allowed"), 5})
	s := newSet(t, gate, b, b, gate)
	for range 3 { // as new series, and as known ones
		got, own := readAll(t, s)
		require.Equal(t, figures{lineA: 3, "weir.limiter.requests{a,allowed}": 5}, got)
		require.Empty(t, own)
	}
	s.Remove(gate)
	got, _ := readAll(t, s)
	require.Equal(t, figures{lineA: 3}, got, "the other source still shows it")
}

func TestASetCopiesItsSources(t *testing.T) {
	list := []stat.Source{shows(slow("a", 1))}
	s := newSet(t, list...)
	list[0] = shows(slow("b", 2))
	got, _ := readAll(t, s)
	require.Equal(t, figures{lineA: 1}, got)
}

func TestTheMetricsOfTheSetComeLast(t *testing.T) {
	var names []string
	for name := range newSet(t, shows(slow("a", 1))).Observe {
		names = append(names, name)
	}
	require.Equal(t, []string{
		lineA, "weir.exporter.source_panics{}", "weir.exporter.skipped_samples{duplicate}",
		"weir.exporter.skipped_samples{unknown}", "weir.exporter.skipped_samples{malformed}",
	}, names)
}

func TestASeriesThatIsNoLongerYieldedIsForgotten(t *testing.T) {
	source := shows(slow("a", 1), slow("b", 2))
	s := newSet(t, source)
	readAll(t, s)
	gone := weak.Make(source.points[0].series)
	source.show(source.points[1])
	got, _ := readAll(t, s)
	require.Equal(t, figures{lineB: 2}, got)
	runtime.GC()
	require.Nil(t, gone.Value(), "the set must not keep a series that is no longer shown")
}

func TestAddAndRemove(t *testing.T) {
	a, b := shows(slow("a", 1)), shows(slow("b", 2))
	s := newSet(t)
	for _, step := range []struct {
		do   string
		call func() error
		want figures
	}{
		{"nothing", func() error { return nil }, figures{}},
		{"add both", func() error { return s.Add(a, b) }, figures{lineA: 1, lineB: 2}},
		{"add one again", func() error { return s.Add(a) }, figures{lineA: 1, lineB: 2}},
		{"remove it and a stranger", func() error { s.Remove(a, shows(), nil); return nil }, figures{lineB: 2}},
		{"add another of its name", func() error { return s.Add(shows(slow("a", 3))) }, figures{lineA: 3, lineB: 2}},
	} {
		require.NoError(t, step.call(), step.do)
		got, own := readAll(t, s)
		require.Equal(t, step.want, got, step.do)
		require.Empty(t, own, step.do)
	}
}

func TestANameIsFreeAsSoonAsItsSourceIsRemoved(t *testing.T) {
	a := shows(slow("a", 1))
	s := newSet(t, a)
	readAll(t, s)
	s.Remove(a)
	require.NoError(t, s.Add(shows(slow("a", 2))), "without a reading in between")
	got, own := readAll(t, s)
	require.Equal(t, figures{lineA: 2}, got)
	require.Empty(t, own)
}

func TestAddRefusesAllOrNothing(t *testing.T) {
	s := newSet(t, shows(slow("a", 1)))
	for want, bad := range map[string]stat.Source{
		`stat: two different series are weir.breaker.slow_calls{weir.breaker.name="a", weir.group.key=""}`: shows(slow("a", 9)),
		`stat: the instrument shop.queue.length is not one of those that the set was made with`:            shows(point{queueLength.Series(), 1}),
		`stat: source 2 of 2 is nil`: nil,
	} {
		require.ErrorContains(t, s.Add(shows(slow("b", 2)), bad), want)
		got, own := readAll(t, s)
		require.Equal(t, figures{lineA: 1}, got)
		require.Empty(t, own, "refused series do not count as skipped")
	}
}

func TestAddIgnoresFaultsOfEarlierSources(t *testing.T) {
	late := shows()
	s := newSet(t, shows(slow("a", 1)), late)
	late.show(slow("a", 9))
	require.NoError(t, s.Add(shows(slow("b", 2))))
	got, _ := readAll(t, s)
	require.Equal(t, figures{lineA: 1, lineB: 2}, got)
}

func TestASourceAddedTwiceIsReadOnce(t *testing.T) {
	a := shows()
	s := newSet(t, a)
	require.NoError(t, s.Add(a))
	require.NoError(t, s.Add(a))
	before := a.reads
	readAll(t, s)
	require.Equal(t, before+1, a.reads)
}

func TestIncomparableSourcesCanBeAddedButNotFound(t *testing.T) {
	l := still{slow("a", 1)}
	s := newSet(t, l)
	require.NoError(t, s.Add(l))
	s.Remove(l)
	got, _ := readAll(t, s)
	require.Equal(t, figures{lineA: 1}, got)
}
