package servers_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/alert"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/exporters/prom"
	"github.com/weir-go/weir/limiter"
)

// program calls a payment service through a gate. Every other call fails for a while.
type program struct {
	start                           time.Time
	payments                        *weir.Gate
	monitor                         *alert.Monitor
	opened, closed, fired, resolved atomic.Int64
}

func newProgram() *program {
	p := &program{start: time.Now()}
	p.payments = weir.New("payments", weir.Config{
		Rate: limiter.PerSecond(250), Burst: 25,
		Breaker: breaker.Config{
			FailureRate: 0.3, Window: time.Second, Cooldown: 200 * time.Millisecond, Recovery: 100 * time.Millisecond,
			Latency: true, OnChange: p.changed,
		},
	})
	p.monitor = alert.NewMonitor(alert.Config{Interval: 100 * time.Millisecond, Notify: []alert.Notifier{alert.Func("count", p.alerted)}},
		alert.Rule{
			Name: "payments fail", Value: alert.FailureRate(p.payments, time.Second), MinCalls: 10,
			When: alert.Above(0.2), For: 200 * time.Millisecond,
		})
	return p
}

func (p *program) changed(c breaker.Change) {
	switch c.To {
	case breaker.Open:
		p.opened.Add(1)
	case breaker.Closed:
		p.closed.Add(1)
	default: // not compared
	}
}

func (p *program) alerted(_ context.Context, a alert.Alert) error {
	if a.State == alert.Firing {
		p.fired.Add(1)
	} else {
		p.resolved.Add(1)
	}
	return nil
}

// serve serves the metrics for Prometheus, and returns the host and port.
func (p *program) serve(t *testing.T) (address string) {
	t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(prom.NewCollector(p.payments, p.monitor))
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

// run makes calls until the breaker has opened and closed, and the alert has fired and resolved.
func (p *program) run(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var parts sync.WaitGroup
	parts.Go(func() { p.monitor.Run(ctx) })
	var fails atomic.Bool
	for range 4 {
		parts.Go(func() { p.pay(ctx, &fails) })
	}
	await := func(condition func() bool) {
		t.Helper()
		require.Eventually(t, condition, 30*time.Second, 10*time.Millisecond)
	}
	await(func() bool { return p.payments.Totals().Successes > 100 })
	fails.Store(true)
	await(func() bool { return p.opened.Load() > 0 && p.fired.Load() > 0 })
	fails.Store(false)
	await(func() bool { return p.closed.Load() > 0 && p.resolved.Load() > 0 })
	cancel()
	parts.Wait()
}

// pay makes calls until ctx is done. They last from 1 to 4 ms, and are more than the limit allows.
func (p *program) pay(ctx context.Context, fails *atomic.Bool) {
	for n := 0; ctx.Err() == nil; n++ {
		<-time.After(3 * time.Millisecond)
		_ = p.payments.Run(ctx, func(context.Context) error { // the gate counts the errors
			<-time.After(time.Duration(1+n%4) * time.Millisecond)
			if fails.Load() && n%2 == 0 {
				return errors.New("the ledger is locked")
			}
			return nil
		})
	}
}
