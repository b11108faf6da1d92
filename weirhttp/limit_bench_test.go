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

// discard is a ResponseWriter that does nothing.
type discard struct{ h http.Header }

func (d discard) Header() http.Header         { return d.h }
func (d discard) Write(p []byte) (int, error) { return len(p), nil }
func (d discard) WriteHeader(int)             {}

func benchmarkHandler(b *testing.B, h http.Handler) {
	r := &http.Request{Method: http.MethodGet, RemoteAddr: "192.0.2.1:1000", Header: http.Header{}}
	w := discard{http.Header{}}
	b.ReportAllocs()
	for b.Loop() {
		clear(w.h)
		h.ServeHTTP(w, r)
	}
}

var nothing = http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})

func benchPolicies(limit int) []weirhttp.Policy {
	return []weirhttp.Policy{
		{Name: "minute", Rate: limiter.Per(float64(limit), time.Minute), Burst: limit, By: weirhttp.ByIP}, {Name: "day", Rate: limiter.Per(float64(limit), 24*time.Hour), Burst: limit, By: weirhttp.ByIP},
	}
}

func BenchmarkServeBare(b *testing.B) { benchmarkHandler(b, nothing) }

func BenchmarkServeLimited(b *testing.B) {
	benchmarkHandler(b, weirhttp.NewLimit(weirhttp.LimitConfig{Policies: benchPolicies(1e9)[:1]}).Handler(nothing))
}

func BenchmarkServeLimitedTwice(b *testing.B) {
	benchmarkHandler(b, weirhttp.NewLimit(weirhttp.LimitConfig{Policies: benchPolicies(1e9)}).Handler(nothing))
}

func BenchmarkServeLimitedQuietly(b *testing.B) {
	benchmarkHandler(b, weirhttp.NewLimit(weirhttp.LimitConfig{Policies: benchPolicies(1e9), Quiet: true}).Handler(nothing))
}

func BenchmarkServeRefused(b *testing.B) {
	benchmarkHandler(b, weirhttp.NewLimit(weirhttp.LimitConfig{Policies: benchPolicies(1)}).Handler(nothing))
}

func BenchmarkServeShed(b *testing.B) {
	flight := inflight.New(inflight.Config{Limit: 10, Name: "api"})
	benchmarkHandler(b, weirhttp.Shed(flight, weirhttp.ShedConfig{})(nothing))
}

func BenchmarkServeBreaker(b *testing.B) {
	benchmarkHandler(b, guard(breaker.New("api", breaker.Config{}), weirhttp.GuardConfig{})(nothing))
}
