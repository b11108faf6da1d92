package readme_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/exporters/otelmetric"
	"github.com/weir-go/weir/exporters/prom"
)

// Prometheus and OpenTelemetry get the same names and the same values from one gate.
func Example_export() {
	ctx := context.Background()
	payments := weir.New("payments", weir.Config{})

	registry := prometheus.NewRegistry() // or prometheus.DefaultRegisterer
	registry.MustRegister(prom.NewCollector(payments))

	reader := metric.NewManualReader() // in a program, a PeriodicReader of an exporter
	provider := metric.NewMeterProvider(metric.WithReader(reader))
	if _, err := otelmetric.Register(provider, payments); err != nil {
		panic(err)
	}

	for range 3 {
		_ = payments.Run(ctx, func(context.Context) error { return nil })
	}

	page := httptest.NewRecorder()
	promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP(page, httptest.NewRequest(http.MethodGet, "/metrics", http.NoBody))
	for line := range strings.Lines(page.Body.String()) {
		if strings.HasPrefix(line, "weir_breaker_calls_total") && strings.Contains(line, "success") {
			fmt.Print(line)
		}
	}

	var all metricdata.ResourceMetrics
	if err := reader.Collect(ctx, &all); err != nil {
		panic(err)
	}
	for _, m := range all.ScopeMetrics[0].Metrics {
		if sum, ok := m.Data.(metricdata.Sum[float64]); ok && m.Name == "weir.breaker.calls" {
			for _, p := range sum.DataPoints {
				if outcome, _ := p.Attributes.Value("weir.breaker.outcome"); outcome.AsString() == "success" {
					fmt.Println(m.Name, p.Value)
				}
			}
		}
	}
	// Output:
	// weir_breaker_calls_total{weir_breaker_name="payments",weir_breaker_outcome="success",weir_group_key=""} 3
	// weir.breaker.calls 3
}
