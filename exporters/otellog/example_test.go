package otellog_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	sdk "go.opentelemetry.io/otel/sdk/log"

	"github.com/weir-go/weir/alert"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/breaker/breakerlog"
	"github.com/weir-go/weir/exporters/otellog"
)

// printer is an exporter that prints the records.
type printer struct{}

func (printer) Export(_ context.Context, records []sdk.Record) error {
	for _, r := range records {
		fmt.Println(r.EventName(), r.Severity(), r.Body().AsString())
	}
	return nil
}
func (printer) Shutdown(context.Context) error   { return nil }
func (printer) ForceFlush(context.Context) error { return nil }

// Send state changes of a breaker to OpenTelemetry as events, and alerts as log records.
func Example() {
	ctx := context.Background()
	provider := sdk.NewLoggerProvider(sdk.WithProcessor(sdk.NewSimpleProcessor(printer{})))
	logger := slog.New(otellog.NewHandler(provider))

	payments := breaker.New("payments", breaker.Config{ConsecutiveFailures: 1, OnChange: breakerlog.Changes(logger)})
	monitor := alert.NewMonitor(
		alert.Config{Notify: []alert.Notifier{alert.Log(logger)}},
		alert.Rule{Name: "payments open", Value: alert.Bool(payments.Tripped), When: alert.Above(0)})

	_ = payments.Run(ctx, func(context.Context) error { return errors.New("the bank is down") })
	monitor.Evaluate(time.Now()) // a program calls go monitor.Run(ctx)
	if err := monitor.Flush(ctx); err != nil {
		fmt.Println(err)
	}
	// Output:
	// weir.breaker.transition WARN breaker open
	//  WARN alert firing
}

func ExampleNewHandler() {
	provider := sdk.NewLoggerProvider(sdk.WithProcessor(sdk.NewSimpleProcessor(printer{})))
	logger := slog.New(otellog.NewHandler(provider))

	payments := breaker.New("payments", breaker.Config{OnChange: breakerlog.Changes(logger)})
	payments.Force(breaker.ForcedOpen, "")
	payments.Release()
	// Output:
	// weir.breaker.transition WARN breaker forced_open
	// weir.breaker.transition INFO breaker closed
}
