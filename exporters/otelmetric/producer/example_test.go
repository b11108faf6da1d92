package producer_test

import (
	"context"
	"fmt"

	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/exporters/otelmetric/producer"
)

// A program gives the producer to a reader that exports; this one reads for itself.
func ExampleProducer() {
	payments := breaker.New("payments", breaker.Config{Latency: true})
	histograms, err := producer.New(payments)
	if err != nil {
		fmt.Println(err)
		return
	}
	reader := sdk.NewManualReader(sdk.WithProducer(histograms))
	_ = sdk.NewMeterProvider(sdk.WithReader(reader))

	_ = payments.Run(context.Background(), func(context.Context) error { return nil })

	var all metricdata.ResourceMetrics
	if err := reader.Collect(context.Background(), &all); err != nil {
		fmt.Println(err)
	}
	for _, m := range all.ScopeMetrics[0].Metrics {
		for _, p := range m.Data.(metricdata.ExponentialHistogram[float64]).DataPoints {
			fmt.Println(m.Name, p.Count, "call, scale", p.Scale)
		}
	}
	// Output: weir.breaker.call.duration 1 call, scale 3
}
