package weirhttp_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/weirhttp"
)

// stubTransport is a base that only returns a response.
type stubTransport struct{}

func (stubTransport) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(nil)}, nil
}

func roundTrips(b *testing.B, transport http.RoundTripper) {
	req := newGet(b, "https://api.example.com/users")
	b.ReportAllocs()
	for b.Loop() {
		resp, err := transport.RoundTrip(req)
		if err != nil {
			b.Fatal(err)
		}
		_ = resp.Body.Close()
	}
}

func BenchmarkRoundTripBare(b *testing.B) { roundTrips(b, stubTransport{}) }

func BenchmarkRoundTripOneGate(b *testing.B) {
	roundTrips(b, weirhttp.NewTransport(weirhttp.ForAll(weir.New("api", weir.Config{})), weirhttp.TransportConfig{Base: stubTransport{}}))
}

func BenchmarkRoundTripPerHost(b *testing.B) {
	roundTrips(b, weirhttp.NewTransport(gatePerHost(weir.Config{}), weirhttp.TransportConfig{Base: stubTransport{}}))
}

func BenchmarkRoundTripPerHostLimited(b *testing.B) {
	roundTrips(b, weirhttp.NewTransport(gatePerHost(weir.Config{Rate: limiter.PerSecond(1e9)}), weirhttp.TransportConfig{Base: stubTransport{}}))
}

func BenchmarkRoundTripRefused(b *testing.B) {
	gate := weir.New("api", weir.Config{})
	gate.Breaker().Force(breaker.ForcedOpen, "")
	transport := weirhttp.NewTransport(weirhttp.ForAll(gate), weirhttp.TransportConfig{Base: stubTransport{}})
	req := newGet(b, "https://api.example.com/users")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := transport.RoundTrip(req); err == nil {
			b.Fatal("let through")
		}
	}
}

func BenchmarkHost(b *testing.B) {
	req := newGet(b, "https://API.example.com:443/users")
	b.ReportAllocs()
	for b.Loop() {
		weirhttp.ByHost(req)
	}
}

// Over loopback, the cost of the gate is small compared with that of HTTP.
func BenchmarkLoopback(b *testing.B) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") }))
	defer server.Close()
	for name, transport := range map[string]http.RoundTripper{
		"bare":    http.DefaultTransport,
		"guarded": weirhttp.NewTransport(gatePerHost(weir.Config{Rate: limiter.PerSecond(1e9)}), weirhttp.TransportConfig{}),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				sendAllowed(b, transport, server.URL)
			}
		})
	}
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
}
