package recipes_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/dev/tests/recipes"
)

func TestMetricsArriveInPrometheusAndOpenTelemetry(t *testing.T) {
	gate, mux, exported := weir.New("payments", weir.Config{}), http.NewServeMux(), new(keeper)
	provider := sdk.NewMeterProvider(sdk.WithReader(sdk.NewPeriodicReader(exported)))
	t.Cleanup(func() { require.NoError(t, provider.Shutdown(context.WithoutCancel(t.Context()))) })
	require.NoError(t, recipes.MountMetrics(mux, gate))
	require.NoError(t, recipes.RegisterMetrics(provider, gate))
	for range 3 {
		require.NoError(t, gate.Run(t.Context(), func(context.Context) error { return nil }))
	}

	w := httptest.NewRecorder()
	mux.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", http.NoBody))
	require.Equal(t, http.StatusOK, w.Code)
	require.Regexp(t, `(?m)^weir_breaker_calls_total\{[^}]*weir_breaker_name="payments",weir_breaker_outcome="success"[^}]*\} 3$`, w.Body.String())

	require.NoError(t, provider.ForceFlush(t.Context()))
	calls, ok := exported.metrics["weir.breaker.calls"].(metricdata.Sum[float64])
	require.True(t, ok, "%T", exported.metrics["weir.breaker.calls"])
	var successes float64
	for _, p := range calls.DataPoints {
		if outcome, _ := p.Attributes.Value("weir.breaker.outcome"); outcome.AsString() == "success" {
			successes += p.Value
		}
	}
	require.InDelta(t, 3, successes, 0)
}
