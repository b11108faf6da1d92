package recipes_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/weir-go/weir/dev/tests/recipes"
)

// keeper is an exporter that keeps the metrics of the last export by name.
type keeper struct {
	sdk.Exporter
	metrics map[string]metricdata.Aggregation
}

func (k *keeper) Export(_ context.Context, all *metricdata.ResourceMetrics) error {
	k.metrics = map[string]metricdata.Aggregation{}
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			k.metrics[m.Name] = m.Data
		}
	}
	return nil
}

func (k *keeper) ForceFlush(context.Context) error { return nil }

func (k *keeper) Shutdown(context.Context) error { return nil }

func (k *keeper) Temporality(kind sdk.InstrumentKind) metricdata.Temporality {
	return sdk.DefaultTemporalitySelector(kind)
}

func (k *keeper) Aggregation(kind sdk.InstrumentKind) sdk.Aggregation {
	return sdk.DefaultAggregationSelector(kind)
}

func TestDurationsAreExportedAsAnExponentialHistogram(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate, exported := recipes.NewTimed("payments"), new(keeper)
		provider, err := recipes.ExportMetrics(exported, gate)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, provider.Shutdown(context.WithoutCancel(t.Context()))) })
		for range 3 {
			require.NoError(t, gate.Run(t.Context(), func(context.Context) error {
				time.Sleep(100 * time.Millisecond)
				return nil
			}))
		}
		require.NoError(t, provider.ForceFlush(t.Context()))
		require.Contains(t, exported.metrics, "weir.breaker.calls")
		histogram, ok := exported.metrics["weir.breaker.call.duration"].(metricdata.ExponentialHistogram[float64])
		require.True(t, ok)
		require.Len(t, histogram.DataPoints, 1)
		point := histogram.DataPoints[0]
		require.EqualValues(t, 3, point.Count)
		require.EqualValues(t, 3, point.Scale)
		require.InDelta(t, 0.3, point.Sum, 0.3*0.091, "the middles of buckets that are 9.1 % wide")
	})
}
