package main

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/weir-go/weir/exporters/dashboard"
	"github.com/weir-go/weir/exporters/prom"
	"github.com/weir-go/weir/stat"
)

// metricsHandler serves the metrics of the sources: for Prometheus at /metrics, and as a live page
// at /debug/weir/.
func metricsHandler(sources ...stat.Source) (http.Handler, error) {
	registry := prometheus.NewRegistry()
	if err := registry.Register(prom.NewCollector(sources...)); err != nil {
		return nil, err
	}
	page, err := dashboard.New(dashboard.Config{}, sources...)
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	mux.Handle("GET /debug/weir/", http.StripPrefix("/debug/weir", page))
	return mux, nil
}

// scrape fetches the metrics like Prometheus and counts the series.
func scrape(ctx context.Context, url string) (series int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return 0, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("%s: %s", url, response.Status)
	}
	lines := bufio.NewScanner(response.Body)
	for lines.Scan() {
		if line := lines.Text(); line != "" && !strings.HasPrefix(line, "#") {
			series++
		}
	}
	return series, lines.Err()
}
