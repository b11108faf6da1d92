package producer_test

import (
	"context"
	"fmt"
	"log"

	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/exporters/otelmetric"
	"github.com/weir-go/weir/exporters/otelmetric/producer"
)

// Export the latencies of a gate through a producer, and its other metrics through otelmetric.
func Example() {
	ctx := context.Background()
	payments := weir.New("payments", weir.Config{Breaker: breaker.Config{Latency: true}})
	histograms, err := producer.New(payments)
	if err != nil {
		log.Fatal(err)
	}
	reader := sdk.NewManualReader(sdk.WithProducer(histograms)) // or NewPeriodicReader(exporter, …)
	provider := sdk.NewMeterProvider(sdk.WithReader(reader))
	if _, err := otelmetric.Register(provider, payments); err != nil {
		log.Fatal(err)
	}

	_ = payments.Run(ctx, func(context.Context) error { return nil })

	var all metricdata.ResourceMetrics
	if err := reader.Collect(ctx, &all); err != nil {
		log.Fatal(err)
	}
	shown := map[string]bool{}
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			shown[m.Name] = true
		}
	}
	fmt.Println(shown["weir.breaker.call.duration"], shown["weir.breaker.calls"])
	// Output: true true
}

// A program gives the producer to a reader that exports. The example reads the metrics itself.
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
