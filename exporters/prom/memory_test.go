package prom_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/exporters/prom"
)

// Keys of a group may come from requests. Their length is bounded in memory and in scrapes: each of
// a breaker's 38 lines has at most a kilobyte of its key.
func TestLongKeysTakeLittleSpace(t *testing.T) {
	const series, key = 10, 1 << 20
	g := breaker.NewGroup[string]("tenants", breaker.GroupConfig{MaxSeries: series})
	for n := range 3 * series {
		g.Get(fmt.Sprint(n, strings.Repeat("k", key)))
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	registry := prometheus.NewRegistry()
	require.NoError(t, registry.Register(prom.NewCollector(g)))
	size := scrapeSize(t, registry, series+1)
	require.Less(t, size, (series+1)*40*1300)
	runtime.GC()
	runtime.ReadMemStats(&after)
	require.Less(t, int64(after.HeapAlloc)-int64(before.HeapAlloc), int64((series+1)*40*4000))
	runtime.KeepAlive(registry)
	runtime.KeepAlive(g)
}

// scrapeSize returns the size of a scrape in bytes, and checks the number of breakers in it.
func scrapeSize(t *testing.T, registry *prometheus.Registry, breakers int) int {
	t.Helper()
	w := httptest.NewRecorder()
	promhttp.HandlerFor(registry, promhttp.HandlerOpts{DisableCompression: true}).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", http.NoBody))
	require.Equal(t, http.StatusOK, w.Code)
	require.Equal(t, breakers, strings.Count(w.Body.String(), "\nweir_breaker_slow_calls_total{"))
	return w.Body.Len()
}
