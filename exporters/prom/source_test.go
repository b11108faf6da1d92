package prom_test

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/exporters/prom"
	"github.com/weir-go/weir/stat"
	"github.com/weir-go/weir/stat/read"
)

// point is a series and its current value.
type point struct {
	series *stat.Series
	value  float64
}

// fakeSource is a source that yields its points, and then may panic.
type fakeSource struct {
	mu      sync.Mutex
	points  []point
	spreads []seriesHistogram
	broken  any
}

// seriesHistogram is a series and its current histogram.
type seriesHistogram struct {
	series    *stat.Series
	histogram stat.Histogram
}

func (f *fakeSource) Histograms(yield func(*stat.Series, stat.Histogram) bool) {
	for _, s := range f.spreads {
		if !yield(s.series, s.histogram) {
			return
		}
	}
}

func (f *fakeSource) Observe(yield func(*stat.Series, float64) bool) {
	f.mu.Lock()
	points, broken := slices.Clone(f.points), f.broken
	f.mu.Unlock()
	for _, p := range points {
		if !yield(p.series, p.value) {
			return
		}
	}
	if broken != nil {
		panic(broken)
	}
}

func (f *fakeSource) setPoints(points ...point) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.points = points
}

func newFakeSource(points ...point) *fakeSource { return &fakeSource{points: points} }

// slowCallsPoint returns a point of a breaker with that name.
func slowCallsPoint(name string, value float64) point {
	return point{instrumentNamed("weir.breaker.slow_calls").Series(name, ""), value}
}

var breakerStates = []string{"closed", "open", "half_open", "recovering", "forced_open", "forced_closed", "disabled", "shadow"}

// breakerSource returns a source with the 40 series of a breaker that has calls.
func breakerSource(name string) *fakeSource {
	f := &fakeSource{}
	for n, state := range breakerStates {
		f.points = append(f.points,
			point{instrumentNamed("weir.breaker.state").Series(name, state, ""), float64(1 - min(n, 1))},
			point{instrumentNamed("weir.breaker.transitions").Series(name, state, ""), float64(n)},
			point{instrumentNamed("weir.breaker.state_time").Series(name, state, ""), float64(n) + 0.25})
	}
	for n, outcome := range []string{"success", "failure", "ignored", "refused"} {
		f.points = append(f.points,
			point{instrumentNamed("weir.breaker.calls").Series(name, outcome, ""), float64(1000 - n)},
			point{instrumentNamed("weir.breaker.window.calls").Series(name, outcome, ""), float64(10 - n)})
	}
	for n, i := range []*stat.Instrument{
		instrumentNamed("weir.breaker.slow_calls"), instrumentNamed("weir.breaker.late_results"), instrumentNamed("weir.breaker.abandoned_probes"), instrumentNamed("weir.breaker.dropped_changes"),
		instrumentNamed("weir.breaker.window.failure_ratio"), instrumentNamed("weir.breaker.window.slow_ratio"), instrumentNamed("weir.breaker.threshold.failure_ratio"), instrumentNamed("weir.breaker.threshold.min_calls"),
	} {
		f.points = append(f.points, point{i.Series(name, ""), float64(n) / 4})
	}
	return f
}

// sourceOfAllInstruments returns a source with one series per instrument, except those of the
// exporter.
func sourceOfAllInstruments() *fakeSource {
	f := &fakeSource{}
	for n, i := range catalogue() {
		if strings.HasPrefix(i.Name, "weir.exporter.") {
			continue
		}
		values := make([]string, len(i.Attrs))
		for k := range values {
			values[k] = "v"
		}
		if series := i.Series(values...); i.Kind == stat.Distribution {
			f.spreads = append(f.spreads, seriesHistogram{series, stat.Histogram{Schema: 3, Counts: []int64{3, 2}, Sum: 5.5}})
		} else {
			f.points = append(f.points, point{series, float64(n) + 0.5})
		}
	}
	return f
}

// register registers a collector of the sources with a pedantic registry.
func register(t *testing.T, sources ...stat.Source) (*prom.Collector, *prometheus.Registry) {
	t.Helper()
	c := prom.NewCollector(sources...)
	r := prometheus.NewPedanticRegistry()
	require.NoError(t, r.Register(c))
	return c, r
}

// scrape returns the sample lines of the text format, without the exporter's metrics.
func scrape(t *testing.T, g prometheus.Gatherer) []string {
	t.Helper()
	lines, err := sampleLines(g)
	require.NoError(t, err)
	return slices.DeleteFunc(lines, func(l string) bool { return strings.HasPrefix(l, "weir_exporter_") })
}

// sampleLines returns the sample lines of the text format, of the named families or of all.
func sampleLines(g prometheus.Gatherer, names ...string) ([]string, error) {
	families, err := g.Gather()
	var text strings.Builder
	for _, f := range families {
		if len(names) == 0 || slices.Contains(names, f.GetName()) {
			_, fault := expfmt.MetricFamilyToText(&text, f)
			err = errors.Join(err, fault)
		}
	}
	lines := strings.Split(strings.TrimSpace(text.String()), "\n")
	return slices.DeleteFunc(lines, func(l string) bool { return l == "" || l[0] == '#' }), err
}

// countSeries returns the number of series with the text as a label value.
func countSeries(families []*dto.MetricFamily, text string) (n int) {
	for _, f := range families {
		for _, m := range f.Metric {
			if slices.ContainsFunc(m.Label, func(l *dto.LabelPair) bool { return l.GetValue() == text }) {
				n++
			}
		}
	}
	return n
}

// catalogue returns the instruments of weir: those of a set without sources.
func catalogue() []*stat.Instrument {
	set, err := read.New(func(*stat.Series) int { return 0 })
	if err != nil {
		panic(err)
	}
	return set.Instruments()
}

// instrumentNamed returns weir's instrument of that name.
func instrumentNamed(name string) *stat.Instrument {
	list := catalogue()
	return list[slices.IndexFunc(list, func(i *stat.Instrument) bool { return i.Name == name })]
}
