package prom_test

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/exporters/prom"
)

// Export a gate at /metrics together with the other metrics of the program.
func Example() {
	payments := weir.New("payments", weir.Config{})

	registry := prometheus.NewRegistry()
	registry.MustRegister(prom.NewCollector(payments))
	mux := http.NewServeMux()
	mux.Handle("/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))

	_ = payments.Run(context.Background(), func(context.Context) error { return nil })

	page := httptest.NewRecorder()
	mux.ServeHTTP(page, httptest.NewRequest(http.MethodGet, "/metrics", http.NoBody))
	for lines := bufio.NewScanner(page.Body); lines.Scan(); {
		if strings.Contains(lines.Text(), `weir_breaker_outcome="success"`) && strings.Contains(lines.Text(), "_total") {
			fmt.Println(lines.Text())
		}
	}
	// Output: weir_breaker_calls_total{weir_breaker_name="payments",weir_breaker_outcome="success",weir_group_key=""} 1
}
