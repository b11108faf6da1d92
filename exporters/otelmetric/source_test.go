package otelmetric_test

import (
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

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
	mu     sync.Mutex
	points []point
	broken any
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

// collect returns the values of a collection by series, as in
// weir.breaker.slow_calls{weir.breaker.name=a}, without the exporter's zeros.
func collect(t *testing.T, r sdk.Reader) map[string]float64 {
	t.Helper()
	values := map[string]float64{}
	for _, m := range metrics(t, r) {
		for _, p := range points(m.Data) {
			name := m.Name
			if p.Attributes.Len() > 0 {
				name += "{" + p.Attributes.Encoded(attribute.DefaultEncoder()) + "}"
			}
			if p.Value != 0 || len(name) < 14 || name[:14] != "weir.exporter." {
				values[name] = p.Value
			}
		}
	}
	return values
}

func metrics(t *testing.T, r sdk.Reader) []metricdata.Metrics {
	t.Helper()
	var rm metricdata.ResourceMetrics
	require.NoError(t, r.Collect(t.Context(), &rm))
	if len(rm.ScopeMetrics) == 0 {
		return nil
	}
	require.Len(t, rm.ScopeMetrics, 1)
	require.Equal(t, "github.com/weir-go/weir/exporters/otelmetric", rm.ScopeMetrics[0].Scope.Name)
	return rm.ScopeMetrics[0].Metrics
}

func points(data metricdata.Aggregation) []metricdata.DataPoint[float64] {
	switch d := data.(type) {
	case metricdata.Sum[float64]:
		return d.DataPoints
	case metricdata.Gauge[float64]:
		return d.DataPoints
	}
	return nil
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
