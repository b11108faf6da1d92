package prom_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/exporters/prom"
	"github.com/weir-go/weir/stat"
)

// eachBreakerCount runs the benchmark with several numbers of breakers, which have 40 series each,
// with and without a histogram of latencies.
func eachBreakerCount(b *testing.B, run func(b *testing.B, sources []stat.Source)) {
	b.Helper()
	for _, c := range []struct {
		breakers int
		latency  bool
	}{{10, false}, {1_000, false}, {10_000, false}, {10, true}, {1_000, true}} {
		b.Run(fmt.Sprintf("breakers=%d/latency=%v", c.breakers, c.latency), func(b *testing.B) {
			sources := busyBreakers(c.breakers, breaker.Config{Latency: c.latency})
			b.ReportAllocs()
			run(b, sources)
		})
	}
}

// busyBreakers returns breakers with enough calls for a failure rate, of many durations.
func busyBreakers(n int, c breaker.Config) []stat.Source {
	sources := make([]stat.Source, n)
	for k := range sources {
		sources[k] = breaker.New(fmt.Sprintf("breaker-%d", k), c)
	}
	for round := range 40 {
		permits := make([]breaker.Permit, n)
		for k := range sources {
			permits[k], _ = sources[k].(*breaker.Breaker).Allow()
		}
		for began := time.Now(); time.Since(began) < time.Microsecond<<(round%16); { // up to 33 ms
		}
		for k := range permits {
			permits[k].Record(context.Background(), nil, breaker.Success)
		}
	}
	return sources
}

// BenchmarkCollect measures the collector's part of a scrape.
func BenchmarkCollect(b *testing.B) {
	eachBreakerCount(b, func(b *testing.B, sources []stat.Source) {
		c := prom.NewCollector(sources...)
		ch := make(chan prometheus.Metric, 1_000)
		go func() {
			for range ch {
			}
		}()
		c.Collect(ch)
		for b.Loop() {
			c.Collect(ch)
		}
		close(ch)
	})
}

// BenchmarkGather measures a scrape without the text encoding.
func BenchmarkGather(b *testing.B) {
	eachBreakerCount(b, func(b *testing.B, sources []stat.Source) {
		r := prometheus.NewRegistry()
		require.NoError(b, r.Register(prom.NewCollector(sources...)))
		_, err := r.Gather() // the first one writes the labels of each series
		require.NoError(b, err)
		for b.Loop() {
			_, err = r.Gather()
			require.NoError(b, err)
		}
	})
}

// BenchmarkScrape measures a whole scrape in text format.
func BenchmarkScrape(b *testing.B) {
	eachBreakerCount(b, func(b *testing.B, sources []stat.Source) {
		r := prometheus.NewRegistry()
		require.NoError(b, r.Register(prom.NewCollector(sources...)))
		page, request := promhttp.HandlerFor(r, promhttp.HandlerOpts{}), httptest.NewRequest(http.MethodGet, "/metrics", http.NoBody)
		page.ServeHTTP(&discardWriter{header: http.Header{}}, request)
		for b.Loop() {
			page.ServeHTTP(&discardWriter{header: http.Header{}}, request)
		}
	})
}

// discardWriter is a ResponseWriter that discards the response.
type discardWriter struct{ header http.Header }

func (s *discardWriter) Header() http.Header         { return s.header }
func (s *discardWriter) WriteHeader(int)             {}
func (s *discardWriter) Write(p []byte) (int, error) { return len(p), nil }

// BenchmarkCollectWhileSeriesComeAndGo removes or returns one series of a thousand breakers before
// every scrape, so that each scrape rebuilds the table of series.
func BenchmarkCollectWhileSeriesComeAndGo(b *testing.B) {
	flicker := newFakeSource()
	c := prom.NewCollector(append(breakers(1_000), flicker)...)
	ch := make(chan prometheus.Metric, 38_000)
	c.Collect(ch)
	there := false
	b.ReportAllocs()
	for b.Loop() {
		for len(ch) > 0 {
			<-ch
		}
		if flicker.points = nil; !there {
			flicker.points = []point{slowCallsPoint("flicker", 1)}
		}
		there = !there
		c.Collect(ch)
	}
}

func breakers(n int) []stat.Source {
	sources := make([]stat.Source, n)
	for k := range sources {
		sources[k] = fixedSource(breakerSource(fmt.Sprintf("breaker-%d", k)).points)
	}
	return sources
}
