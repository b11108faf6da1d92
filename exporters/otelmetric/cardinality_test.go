package otelmetric_test

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/exporters/otelmetric"
	"github.com/weir-go/weir/stat"
)

// 2,000 is the limit of the SDK by default, from v1.44.0 on.
func TestTheSDKMergesTheStatesOf250Breakers(t *testing.T) {
	for n, want := range map[int]bool{249: false, 250: true} {
		sources := make([]stat.Source, n)
		for i := range sources {
			sources[i] = breaker.New(strconv.Itoa(i), breaker.Config{})
		}
		reader := sdk.NewManualReader()
		_, err := otelmetric.Register(sdk.NewMeterProvider(sdk.WithReader(reader), sdk.WithCardinalityLimit(2000)), sources...)
		require.NoError(t, err)
		var data metricdata.ResourceMetrics
		require.NoError(t, reader.Collect(t.Context(), &data))
		merged := false
		for _, m := range data.ScopeMetrics[0].Metrics {
			if sum, ok := m.Data.(metricdata.Sum[float64]); ok && m.Name == "weir.breaker.state" {
				for _, p := range sum.DataPoints {
					merged = merged || p.Attributes.HasValue("otel.metric.overflow")
				}
			}
		}
		require.Equal(t, want, merged, n)
	}
}
