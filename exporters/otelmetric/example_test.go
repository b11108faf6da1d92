package otelmetric_test

import (
	"context"
	"fmt"

	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/exporters/otelmetric"
)

// A program uses otel.GetMeterProvider() and a reader that exports. The example reads the metrics
// itself.
func ExampleRegister() {
	reader := sdk.NewManualReader()
	provider := sdk.NewMeterProvider(sdk.WithReader(reader))

	payments := breaker.New("payments", breaker.Config{})
	registration, err := otelmetric.Register(provider, payments)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = registration.Unregister() }()

	_ = payments.Run(context.Background(), func(context.Context) error { return nil })

	var all metricdata.ResourceMetrics
	if err := reader.Collect(context.Background(), &all); err != nil {
		fmt.Println(err)
	}
	for _, m := range all.ScopeMetrics[0].Metrics {
		if m.Name == "weir.breaker.calls" {
			for _, p := range m.Data.(metricdata.Sum[float64]).DataPoints {
				outcome, _ := p.Attributes.Value("weir.breaker.outcome")
				fmt.Println(m.Name, outcome.AsString(), p.Value)
			}
		}
	}
	// Unordered output:
	// weir.breaker.calls success 1
	// weir.breaker.calls failure 0
	// weir.breaker.calls ignored 0
	// weir.breaker.calls refused 0
}

func ExampleRegistration() {
	registration, err := otelmetric.Register(sdk.NewMeterProvider(), breaker.New("payments", breaker.Config{}))
	if err != nil {
		fmt.Println(err)
		return
	}
	users := breaker.New("users", breaker.Config{})
	fmt.Println(registration.Add(users))
	fmt.Println(registration.Add(breaker.New("users", breaker.Config{})) != nil, "for a second source of that name")
	registration.Remove(users)
	fmt.Println(registration.Unregister())
	// Output:
	// <nil>
	// true for a second source of that name
	// <nil>
}
