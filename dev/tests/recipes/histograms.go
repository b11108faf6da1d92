package recipes

import (
	"go.opentelemetry.io/otel/sdk/metric"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/exporters/otelmetric"
	"github.com/weir-go/weir/exporters/otelmetric/producer"
)

//readme:histograms

// NewTimed returns a gate that keeps a histogram of the durations of its calls.
func NewTimed(name string) *weir.Gate {
	return weir.New(name, weir.Config{Breaker: breaker.Config{Latency: true}})
}

// ExportMetrics exports the histogram of the gate through a producer, and its other metrics.
func ExportMetrics(exporter metric.Exporter, gate *weir.Gate) (*metric.MeterProvider, error) {
	histograms, err := producer.New(producer.Config{}, gate)
	if err != nil {
		return nil, err
	}
	reader := metric.NewPeriodicReader(exporter, metric.WithProducer(histograms))
	provider := metric.NewMeterProvider(metric.WithReader(reader))
	_, err = otelmetric.Register(provider, gate)
	return provider, err
}

//readme:end
