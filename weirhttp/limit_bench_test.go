package weirhttp_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/inflight"
	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/weirhttp"
)

// discardWriter is a ResponseWriter that does nothing.
type discardWriter struct{ h http.Header }

func (d discardWriter) Header() http.Header         { return d.h }
func (d discardWriter) Write(p []byte) (int, error) { return len(p), nil }
func (d discardWriter) WriteHeader(int)             {}

func benchmarkHandler(b *testing.B, h http.Handler) {
	r := &http.Request{Method: http.MethodGet, RemoteAddr: "192.0.2.1:1000", Header: http.Header{}}
	w := discardWriter{http.Header{}}
	b.ReportAllocs()
	for b.Loop() {
		clear(w.h)
		h.ServeHTTP(w, r)
	}
}

var emptyHandler = http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})

func benchPolicies(limit int) []weirhttp.Policy {
	return []weirhttp.Policy{
		{Name: "minute", Rate: limiter.Per(float64(limit), time.Minute), Burst: limit, By: weirhttp.ByIP}, {Name: "day", Rate: limiter.Per(float64(limit), 24*time.Hour), Burst: limit, By: weirhttp.ByIP},
	}
}

func BenchmarkServeBare(b *testing.B) { benchmarkHandler(b, emptyHandler) }

func BenchmarkServeLimited(b *testing.B) {
	benchmarkHandler(b, weirhttp.NewLimit(weirhttp.LimitConfig{Policies: benchPolicies(1e9)[:1]}).Handler(emptyHandler))
}

func BenchmarkServeLimitedTwice(b *testing.B) {
	benchmarkHandler(b, weirhttp.NewLimit(weirhttp.LimitConfig{Policies: benchPolicies(1e9)}).Handler(emptyHandler))
}

func BenchmarkServeLimitedQuietly(b *testing.B) {
	benchmarkHandler(b, weirhttp.NewLimit(weirhttp.LimitConfig{Policies: benchPolicies(1e9), Quiet: true}).Handler(emptyHandler))
}

func BenchmarkServeRefused(b *testing.B) {
	benchmarkHandler(b, weirhttp.NewLimit(weirhttp.LimitConfig{Policies: benchPolicies(1)}).Handler(emptyHandler))
}

func BenchmarkServeShed(b *testing.B) {
	flight := inflight.New(inflight.Config{Limit: 10, Name: "api"})
	benchmarkHandler(b, weirhttp.Shed(flight, weirhttp.ShedConfig{})(emptyHandler))
}

func BenchmarkServeBreaker(b *testing.B) {
	benchmarkHandler(b, guard(breaker.New("api", breaker.Config{}), weirhttp.GuardConfig{})(emptyHandler))
}
