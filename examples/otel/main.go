// Command otel exports the metrics of a gate through the OpenTelemetry SDK, once per second for
// three seconds.
//
// To export to a collector, use otlpmetrichttp.New(ctx) instead of stdoutmetric.New.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/stdout/stdoutmetric"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/exporters/otelmetric"
	"github.com/weir-go/weir/limiter"
)

func main() {
	ctx := context.Background()
	// without the encoder it writes JSON
	exporter, err := stdoutmetric.New(stdoutmetric.WithEncoder(sumEncoder{}))
	if err != nil {
		log.Fatal(err)
	}
	reader := metric.NewPeriodicReader(exporter, metric.WithInterval(time.Second))
	provider := metric.NewMeterProvider(metric.WithReader(reader))

	payments := weir.New("payments", weir.Config{Rate: limiter.PerSecond(80), Burst: 10})
	if _, err := otelmetric.Register(provider, payments); err != nil {
		log.Fatal(err)
	}
	pay(ctx, payments)
	if err := provider.Shutdown(ctx); err != nil { // exports once more
		log.Fatal(err)
	}
}

// pay makes 100 payments per second. Every tenth fails.
func pay(ctx context.Context, payments *weir.Gate) {
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for call := range 250 {
		<-ticker.C
		_ = payments.Run(ctx, func(context.Context) error { // the gate counts the errors
			if call%10 == 0 {
				return errors.New("declined")
			}
			return nil
		})
	}
}

// sumEncoder writes one line per sum that is not zero.
type sumEncoder struct{}

func (sumEncoder) Encode(v any) error {
	fmt.Println("export")
	for _, scope := range v.(*metricdata.ResourceMetrics).ScopeMetrics {
		for _, m := range scope.Metrics {
			if sum, ok := m.Data.(metricdata.Sum[float64]); ok {
				printPoints(m.Name, sum.DataPoints)
			}
		}
	}
	return nil
}

func printPoints(name string, points []metricdata.DataPoint[float64]) {
	for _, p := range points {
		if p.Value != 0 {
			fmt.Printf("  %-24s %7.4g  %s\n", name, p.Value, p.Attributes.Encoded(attribute.DefaultEncoder()))
		}
	}
}
