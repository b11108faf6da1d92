package readme

import (
	"context"
	"encoding/json"
	"math"
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
	"github.com/weir-go/weir/alert/notify"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/limiter"
)

func TestFailingPaymentsAreStoppedAndAlerted(t *testing.T) {
	paged := make(chan string, 1)
	pager := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var message struct{ Status string }
		if json.NewDecoder(r.Body).Decode(&message) == nil {
			paged <- message.Status
		}
	}))
	defer pager.Close()
	replace(t, &payments, weir.New("payments", weir.Config{}))
	replace(t, &paymentsFail.Value, alert.FailureRate(payments, 5*time.Minute))
	hook := notify.NewWebhook(notify.Config{URL: notify.Secret(pager.URL)})
	monitor := alert.NewMonitor(alert.Config{Notify: []alert.Notifier{hook}}, paymentsFail)
	t0 := time.Now()
	monitor.Evaluate(t0)

	receipt, err := charge(t.Context(), Order{Cents: 100})
	require.NoError(t, err)
	require.Equal(t, 100, receipt.Cents)
	for range 30 {
		_, err = charge(t.Context(), Order{})
	}

	require.ErrorIs(t, err, breaker.ErrOpen)
	require.ErrorContains(t, err, "payments are down, back in ")
	require.Positive(t, weir.RetryAfter(err))
	monitor.Evaluate(t0.Add(10 * time.Second))
	monitor.Evaluate(t0.Add(40 * time.Second))
	require.NoError(t, monitor.Flush(t.Context()))
	require.Equal(t, "firing", <-paged)
}

func TestPaymentsOverTheLimitAreRefused(t *testing.T) {
	replace(t, &payments, weir.New("payments", weir.Config{Rate: limiter.Per(1, time.Hour)}))

	_, first := charge(t.Context(), Order{Cents: 100})
	_, second := charge(t.Context(), Order{Cents: 100})

	require.NoError(t, first)
	require.ErrorIs(t, second, limiter.ErrLimited)
	require.ErrorContains(t, second, "too many payments: ")
}

func TestOnlyTheCallsOfTheCatalogAreBounded(t *testing.T) {
	bound := func(g *weir.Gate) (limit float64) {
		limit = math.Inf(1)
		for series, v := range g.Observe {
			if series.Instrument.Name == "weir.inflight.limit" {
				limit = v
			}
		}
		return limit
	}
	for _, g := range []*weir.Gate{ledger, catalog} {
		require.NoError(t, g.Run(t.Context(), func(context.Context) error { return nil }))
	}
	require.True(t, math.IsInf(bound(ledger), 1))
	require.Less(t, bound(catalog), 1000.0)
}

func TestMetricsOfPaymentsAndAlertsAreExported(t *testing.T) {
	registry := prometheus.NewRegistry()
	replace[prometheus.Registerer](t, &prometheus.DefaultRegisterer, registry)
	useOwnMeters(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()

	require.NoError(t, export(watch(ctx, "http://127.0.0.1:1/pager")))

	require.Subset(t, familyNames(t, registry), []string{"weir_breaker_calls_total", "weir_limiter_requests_total", "weir_alert_state"})
}

// useOwnMeters gives the test its own MeterProvider, because a name can be registered only once per
// provider.
func useOwnMeters(t *testing.T) {
	t.Helper()
	old := otel.GetMeterProvider()
	t.Cleanup(func() { otel.SetMeterProvider(old) })
	otel.SetMeterProvider(metric.NewMeterProvider())
}

// replace sets a variable until the end of the test, so that tests do not affect each other.
func replace[T any](t *testing.T, variable *T, value T) {
	t.Helper()
	old := *variable
	t.Cleanup(func() { *variable = old })
	*variable = value
}

func familyNames(t *testing.T, registry *prometheus.Registry) []string {
	t.Helper()
	gathered, err := registry.Gather()
	require.NoError(t, err)
	var names []string
	for _, family := range gathered {
		names = append(names, family.GetName())
	}
	return names
}
