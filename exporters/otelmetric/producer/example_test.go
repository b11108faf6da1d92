package producer_test

import (
	"context"
	"fmt"
	"log"

	"go.opentelemetry.io/otel/attribute"
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
	histograms, err := producer.New(producer.Config{}, payments)
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
	histograms, err := producer.New(producer.Config{}, payments)
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

// A backend that takes deltas gets one histogram per group, without the keys of its members.
func ExampleConfig() {
	hosts := breaker.NewGroup[string]("hosts", breaker.GroupConfig{Breaker: breaker.Config{Latency: true}})
	for _, host := range []string{"a.example", "b.example"} {
		_ = hosts.Get(host).Run(context.Background(), func(context.Context) error { return nil })
	}
	histograms, err := producer.New(producer.Config{
		Delta: true, Attributes: attribute.NewDenyKeysFilter("weir.group.key"),
	}, hosts)
	if err != nil {
		panic(err)
	}
	metrics, _ := histograms.Produce(context.Background())
	data := metrics[0].Metrics[0].Data.(metricdata.ExponentialHistogram[float64])
	fmt.Println(data.Temporality, len(data.DataPoints), data.DataPoints[0].Count)
	// Output: DeltaTemporality 1 2
}
