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

// telemetry exports metrics through the OpenTelemetry SDK.
type telemetry struct {
	provider *sdk.MeterProvider
	exporter *countingExporter
	to       string    // the destination, for display
	file     io.Closer // nil if there is no file
	faults   atomic.Int64
	fault    atomic.Pointer[error] // the latest error
}

// newTelemetry returns a telemetry whose provider exports the histograms of the sources, and all
// metrics registered later. It exports over OTLP if the environment has an endpoint, and otherwise
// to the file. If file is empty it discards the exports.
func newTelemetry(ctx context.Context, every time.Duration, file string, sources ...stat.Source) (*telemetry, error) {
	t := &telemetry{}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(t.addError))
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
	histograms, err := producer.New(producer.Config{}, sources...)
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
			return otlpmetrichttp.New(ctx) // reads the same variables
		}
	}
	switch file {
	case "":
		t.to = "discarded: use -otel FILE to keep them"
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

// addError records errors of the SDK, which the SDK would otherwise print into the live view. It
// ignores an export that the shutdown cancelled, because one more export follows.
func (t *telemetry) addError(err error) {
	if err != nil && !errors.Is(err, context.Canceled) {
		t.faults.Add(1)
		t.fault.Store(&err)
	}
}

// close exports once more. It returns the errors of all exports.
func (t *telemetry) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	t.addError(t.provider.Shutdown(ctx))
	if t.file != nil {
		t.addError(t.file.Close())
	}
	if n := t.faults.Load(); n > 0 {
		return fmt.Errorf("errors of OpenTelemetry: %d, the latest: %w", n, *t.fault.Load())
	}
	return nil
}

// countingExporter counts the successful exports.
type countingExporter struct {
	sdk.Exporter
	taken atomic.Int64
}

// Export implements [sdk.Exporter].
func (c *countingExporter) Export(ctx context.Context, metrics *metricdata.ResourceMetrics) error {
	err := c.Exporter.Export(ctx, metrics)
	if err == nil {
		c.taken.Add(1)
	}
	return err
}
