package recipes

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/otel/metric"

	"github.com/weir-go/weir/exporters/otelmetric"
	"github.com/weir-go/weir/exporters/prom"
	"github.com/weir-go/weir/stat"
)

//readme:prometheus

// MountMetrics serves the metrics of the sources at GET /metrics.
func MountMetrics(mux *http.ServeMux, sources ...stat.Source) error {
	registry := prometheus.NewRegistry()
	if err := registry.Register(prom.NewCollector(sources...)); err != nil {
		return err
	}
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	return nil
}

//readme:end

//readme:otel

// RegisterMetrics observes the sources whenever a reader of the provider collects.
func RegisterMetrics(provider metric.MeterProvider, sources ...stat.Source) error {
	_, err := otelmetric.Register(provider, sources...)
	return err
}

//readme:end
