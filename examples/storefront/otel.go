package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/exporters/stdout/stdoutmetric"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/resource"

	"github.com/weir-go/weir/exporters/otelmetric/producer"
	"github.com/weir-go/weir/stat"
)

// telemetry exports through the OpenTelemetry SDK.
type telemetry struct {
	provider *sdk.MeterProvider
	exporter *countingExporter
	to       string    // in words
	file     io.Closer // nil for none
	faults   atomic.Int64
	fault    atomic.Pointer[error] // the last
}

// newTelemetry returns a provider that exports the histograms of the sources, and what
// else will be registered with it: over OTLP where the environment has an endpoint, to
// the named file otherwise, and to nowhere if there is no name either.
func newTelemetry(ctx context.Context, every time.Duration, file string, sources ...stat.Source) (*telemetry, error) {
	t := &telemetry{}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(t.note))
	exporter, err := t.open(ctx, file)
	if err != nil {
		return nil, err
	}
	t.exporter = &countingExporter{Exporter: exporter}
	about, err := resource.New(ctx, resource.WithAttributes(attribute.String("service.name", "storefront")),
		resource.WithTelemetrySDK(), resource.WithFromEnv())
	if err != nil {
		return nil, err
	}
	histograms, err := producer.New(sources...)
	if err != nil {
		return nil, err
	}
	reader := sdk.NewPeriodicReader(t.exporter, sdk.WithInterval(every), sdk.WithTimeout(2*time.Second), sdk.WithProducer(histograms))
	t.provider = sdk.NewMeterProvider(sdk.WithReader(reader), sdk.WithResource(about))
	return t, nil
}

func (t *telemetry) open(ctx context.Context, file string) (sdk.Exporter, error) {
	for _, name := range []string{"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"} {
		if endpoint := os.Getenv(name); endpoint != "" {
			t.to = "to " + endpoint
			return otlpmetrichttp.New(ctx) // which reads the same variables
		}
	}
	switch file {
	case "":
		t.to = "only counted: -otel file keeps them"
		return stdoutmetric.New(stdoutmetric.WithWriter(io.Discard))
	case "-":
		t.to = "to standard error"
		return stdoutmetric.New(stdoutmetric.WithWriter(os.Stderr))
	}
	f, err := os.Create(file)
	if err != nil {
		return nil, err
	}
	t.to, t.file = "to "+file, f
	return stdoutmetric.New(stdoutmetric.WithWriter(f))
}

// note takes the SDK's errors, which it would print across the live view otherwise. An
// export that the shutdown cuts off is no fault: a last one follows it.
func (t *telemetry) note(err error) {
	if err != nil && !errors.Is(err, context.Canceled) {
		t.faults.Add(1)
		t.fault.Store(&err)
	}
}

// close exports a last time. It returns what has gone wrong with any export.
func (t *telemetry) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	t.note(t.provider.Shutdown(ctx))
	if t.file != nil {
		t.note(t.file.Close())
	}
	if n := t.faults.Load(); n > 0 {
		return fmt.Errorf("errors of OpenTelemetry: %d, the last of them: %w", n, *t.fault.Load())
	}
	return nil
}

// countingExporter counts the exports that were taken.
type countingExporter struct {
	sdk.Exporter
	taken atomic.Int64
}

// Export implements [sdk.Exporter].
func (c *countingExporter) Export(ctx context.Context, figures *metricdata.ResourceMetrics) error {
	err := c.Exporter.Export(ctx, figures)
	if err == nil {
		c.taken.Add(1)
	}
	return err
}
