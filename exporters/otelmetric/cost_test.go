package otelmetric_test

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/weir-go/weir/exporters/otelmetric"
	"github.com/weir-go/weir/stat"
)

// callbackProvider is an SDK that only keeps the callback, to measure the cost of this package.
type callbackProvider struct {
	noop.MeterProvider
	meter callbackMeter
}

type callbackMeter struct {
	noop.Meter
	callback metric.Callback
}

func (p *callbackProvider) Meter(string, ...metric.MeterOption) metric.Meter { return &p.meter }

func (m *callbackMeter) RegisterCallback(f metric.Callback, _ ...metric.Observable) (metric.Registration, error) {
	m.callback = f
	return noop.Registration{}, nil
}

// observationCounter counts the observations.
type observationCounter struct {
	noop.Observer
	observed int
}

func (o *observationCounter) ObserveFloat64(metric.Float64Observable, float64, ...metric.ObserveOption) {
	o.observed++
}

// fixedSource is a source that does not allocate.
type fixedSource []point

func (s fixedSource) Observe(yield func(*stat.Series, float64) bool) {
	for _, p := range s {
		if !yield(p.series, p.value) {
			return
		}
	}
}

// breakers returns sources with the 37 series of a breaker each.
func breakers(n int) []stat.Source {
	sources := make([]stat.Source, n)
	for k := range sources {
		s := make(fixedSource, 37)
		for i := range s {
			s[i] = point{instrumentNamed("weir.breaker.calls").Series(fmt.Sprintf("breaker-%d", k), strconv.Itoa(i), ""), float64(i)}
		}
		sources[k] = s
	}
	return sources
}

func TestCollectionAllocatesNothingPerSeries(t *testing.T) {
	var p callbackProvider
	_, err := otelmetric.Register(&p, breakers(50)...)
	require.NoError(t, err)
	ctx, o := t.Context(), &observationCounter{}
	allocs := testing.AllocsPerRun(20, func() { _ = p.meter.callback(ctx, o) })
	require.LessOrEqual(t, allocs, 4.0, "one per collection, and some by the garbage collector")
	require.Equal(t, 21*(50*37+4), o.observed, "the series and 4 of the exporter")
}

// BenchmarkCallback measures the callback's part of a collection, with 37 series per breaker.
func BenchmarkCallback(b *testing.B) {
	for _, n := range []int{10, 1_000, 10_000} {
		b.Run(fmt.Sprintf("breakers=%d", n), func(b *testing.B) {
			var p callbackProvider
			_, err := otelmetric.Register(&p, breakers(n)...)
			require.NoError(b, err)
			require.NoError(b, p.meter.callback(b.Context(), noop.Observer{}))
			b.ReportAllocs()
			for b.Loop() {
				_ = p.meter.callback(b.Context(), noop.Observer{})
			}
		})
	}
}

// BenchmarkCollect measures a collection of the SDK.
func BenchmarkCollect(b *testing.B) {
	for _, n := range []int{10, 1_000} {
		b.Run(fmt.Sprintf("breakers=%d", n), func(b *testing.B) {
			r := sdk.NewManualReader()
			_, err := otelmetric.Register(sdk.NewMeterProvider(sdk.WithReader(r), sdk.WithCardinalityLimit(0)), breakers(n)...)
			require.NoError(b, err)
			var rm metricdata.ResourceMetrics
			b.ReportAllocs()
			for b.Loop() {
				require.NoError(b, r.Collect(b.Context(), &rm))
			}
		})
	}
}
