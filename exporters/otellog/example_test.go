package otellog_test

import (
	"context"
	"fmt"
	"log/slog"

	sdk "go.opentelemetry.io/otel/sdk/log"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/exporters/otellog"
)

// printer stands for an exporter.
type printer struct{}

func (printer) Export(_ context.Context, records []sdk.Record) error {
	for _, r := range records {
		fmt.Println(r.EventName(), r.Severity(), r.Body().AsString())
	}
	return nil
}
func (printer) Shutdown(context.Context) error   { return nil }
func (printer) ForceFlush(context.Context) error { return nil }

func ExampleHandler() {
	provider := sdk.NewLoggerProvider(sdk.WithProcessor(sdk.NewSimpleProcessor(printer{})))
	logger := slog.New(otellog.NewHandler(provider))

	payments := breaker.New("payments", breaker.Config{OnChange: breaker.LogChanges(logger)})
	payments.Force(breaker.ForcedOpen)
	payments.Release()
	// Output:
	// weir.breaker.transition WARN breaker forced_open
	// weir.breaker.transition INFO breaker closed
}
