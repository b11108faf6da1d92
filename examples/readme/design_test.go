package readme_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/sdk/metric"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/alert"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/examples/readme"
	"github.com/weir-go/weir/exporters/dashboard"
	"github.com/weir-go/weir/exporters/otelmetric"
	"github.com/weir-go/weir/exporters/prom"
	"github.com/weir-go/weir/limiter"
)

type (
	Order   = readme.Order
	Receipt = readme.Receipt
)

var client chargeClient

type chargeClient struct{}

func (chargeClient) Charge(_ context.Context, order Order) (*Receipt, error) {
	return &Receipt{Cents: order.Cents}, nil
}

// charge, the variables and observe are the calls that the API of weir was designed from, word for
// word. They must compile, whatever else changes.

func charge(ctx context.Context, order Order) (*Receipt, error) {
	receipt, err := weir.Do(ctx, payments, func(ctx context.Context) (*Receipt, error) { return client.Charge(ctx, order) })
	switch {
	case errors.Is(err, breaker.ErrOpen):
		return nil, fmt.Errorf("payments are down, back in %s: %w", weir.RetryAfter(err), err)
	case errors.Is(err, limiter.ErrLimited):
		return nil, fmt.Errorf("too many payments: %w", err)
	}
	return receipt, err
}

var (
	payments = weir.New("payments", weir.Config{Rate: limiter.PerSecond(200), Burst: 50})
	// A breaker alone: breaker.Do(ctx, users, fetchUser).
	users = breaker.New("users-api", breaker.Config{})
)

func observe(ctx context.Context) error {
	monitor := alert.NewMonitor(alert.Config{Notify: []alert.Notifier{alert.Log(slog.Default())}},
		alert.Rule{
			Name: "payments errors", Value: alert.FailureRate(payments, 5*time.Minute),
			When: alert.Above(0.05), MinCalls: 20, For: 30 * time.Second,
		},
		alert.Rule{Name: "users-api open", Value: alert.Bool(users.Tripped), When: alert.Above(0)})
	go monitor.Run(ctx)

	prometheus.MustRegister(prom.NewCollector(payments, users, monitor))
	page, err := dashboard.New(dashboard.Config{}, payments, users, monitor)
	if err != nil {
		return err
	}
	http.Handle("/debug/weir/", http.StripPrefix("/debug/weir", page))
	_, err = otelmetric.Register(otel.GetMeterProvider(), payments, users, monitor)
	return err
}

func TestTheDesignedCallsWork(t *testing.T) {
	old, registry := prometheus.DefaultRegisterer, prometheus.NewRegistry()
	t.Cleanup(func() { prometheus.DefaultRegisterer = old })
	prometheus.DefaultRegisterer = registry
	meters := otel.GetMeterProvider()
	t.Cleanup(func() { otel.SetMeterProvider(meters) })
	// a name can be registered only once per provider
	otel.SetMeterProvider(metric.NewMeterProvider())

	mux := http.DefaultServeMux
	t.Cleanup(func() { http.DefaultServeMux = mux })
	http.DefaultServeMux = http.NewServeMux()

	require.NoError(t, observe(t.Context()))

	receipt, err := charge(t.Context(), Order{Cents: 100})
	require.NoError(t, err)
	require.Equal(t, 100, receipt.Cents)
	user, err := breaker.Do(t.Context(), users, func(context.Context) (string, error) { return "Ada", nil })
	require.NoError(t, err)
	require.Equal(t, "Ada", user)

	page := httptest.NewRecorder()
	http.DefaultServeMux.ServeHTTP(page, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/debug/weir/", http.NoBody))
	require.Equal(t, http.StatusOK, page.Code)

	families, err := registry.Gather()
	require.NoError(t, err)
	require.NotEmpty(t, families)
}
