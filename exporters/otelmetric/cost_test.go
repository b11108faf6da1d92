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

// provider is an SDK that does nothing but keep the callback: with it a cycle
// costs what is ours.
type provider struct {
	noop.MeterProvider
	meter meter
}

type meter struct {
	noop.Meter
	callback metric.Callback
}

func (p *provider) Meter(string, ...metric.MeterOption) metric.Meter { return &p.meter }

func (m *meter) RegisterCallback(f metric.Callback, _ ...metric.Observable) (metric.Registration, error) {
	m.callback = f
	return noop.Registration{}, nil
}

// tally counts what it is given.
type tally struct {
	noop.Observer
	observed int
}

func (o *tally) ObserveFloat64(metric.Float64Observable, float64, ...metric.ObserveOption) {
	o.observed++
}

// still is a source that allocates nothing.
type still []point

func (s still) Observe(yield func(*stat.Series, float64) bool) {
	for _, p := range s {
		if !yield(p.series, p.value) {
			return
		}
	}
}

// breakers makes sources with the 37 series of a breaker each.
func breakers(n int) []stat.Source {
	sources := make([]stat.Source, n)
	for k := range sources {
		s := make(still, 37)
		for i := range s {
			s[i] = point{known("weir.breaker.calls").Series(fmt.Sprintf("breaker-%d", k), strconv.Itoa(i), ""), float64(i)}
		}
		sources[k] = s
	}
	return sources
}

func TestACycleAllocatesNothingForASeries(t *testing.T) {
	var p provider
	_, err := otelmetric.Register(&p, breakers(50)...)
	require.NoError(t, err)
	ctx, o := t.Context(), &tally{}
	allocs := testing.AllocsPerRun(20, func() { _ = p.meter.callback(ctx, o) })
	require.LessOrEqual(t, allocs, 4.0, "1 for the cycle; a collection of garbage may add a few")
	require.Equal(t, 21*(50*37+4), o.observed, "and the exporter's own 4")
}

// BenchmarkCallback is our part of a collection: 37 series a breaker.
func BenchmarkCallback(b *testing.B) {
	for _, n := range []int{10, 1_000, 10_000} {
		b.Run(fmt.Sprintf("breakers=%d", n), func(b *testing.B) {
			var p provider
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

// BenchmarkCollect is what the SDK makes of it.
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
