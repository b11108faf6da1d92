package otelmetric_test

import (
	"context"
	"fmt"
	"log"

	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/exporters/otelmetric"
)

// exporter prints the successful calls instead of sending the metrics.
type exporter struct{ sdk.Exporter }

func (exporter) Export(_ context.Context, all *metricdata.ResourceMetrics) error {
	for _, m := range all.ScopeMetrics[0].Metrics {
		if m.Name != "weir.breaker.calls" {
			continue
		}
		for _, p := range m.Data.(metricdata.Sum[float64]).DataPoints {
			if outcome, _ := p.Attributes.Value("weir.breaker.outcome"); outcome.AsString() == "success" {
				fmt.Println(m.Name, p.Value)
			}
		}
	}
	return nil
}

func (exporter) Temporality(kind sdk.InstrumentKind) metricdata.Temporality {
	return sdk.DefaultTemporalitySelector(kind)
}

func (exporter) Aggregation(kind sdk.InstrumentKind) sdk.Aggregation {
	return sdk.DefaultAggregationSelector(kind)
}

func (exporter) ForceFlush(context.Context) error { return nil }

func (exporter) Shutdown(context.Context) error { return nil }

// Export a gate through the meter provider of the program.
func Example() {
	ctx := context.Background()
	// or otel.GetMeterProvider()
	provider := sdk.NewMeterProvider(sdk.WithReader(sdk.NewPeriodicReader(exporter{})))

	payments := weir.New("payments", weir.Config{})
	if _, err := otelmetric.Register(provider, payments); err != nil {
		log.Fatal(err)
	}
	_ = payments.Run(ctx, func(context.Context) error { return nil })

	if err := provider.Shutdown(ctx); err != nil { // exports a last time
		log.Fatal(err)
	}
	// Output: weir.breaker.calls 1
}
