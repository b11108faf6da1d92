package otelweir_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/weirhttp"
	"github.com/weir-go/weir/weirhttp/otelweir"
)

// A refusal marks the span of its request.
func Example() {
	gate := weir.New("users", weir.Config{})
	gate.Breaker().Force(breaker.ForcedOpen, "")
	client := &http.Client{Transport: weirhttp.NewTransport(weirhttp.ForAll(gate), weirhttp.TransportConfig{OnRefusal: otelweir.RefusedCall})}

	spans := tracetest.NewSpanRecorder()
	tracer := trace.NewTracerProvider(trace.WithSpanProcessor(spans)).Tracer("shop")
	ctx, span := tracer.Start(context.Background(), "show the user")
	req, _ := http.NewRequestWithContext(ctx, http.MethodGet, "https://users.example/7", http.NoBody)
	if resp, err := client.Do(req); err == nil {
		_ = resp.Body.Close()
	}
	span.End()

	refused := spans.Ended()[0].Attributes()[0]
	fmt.Println(refused.Key, refused.Value.AsBool())
	// Output: weir.refused true
}

func ExampleRefusedCall() {
	gate := weir.New("users", weir.Config{})
	gate.Breaker().Force(breaker.ForcedOpen, "")
	transport := weirhttp.NewTransport(weirhttp.ForAll(gate), weirhttp.TransportConfig{OnRefusal: otelweir.RefusedCall})

	spans := tracetest.NewSpanRecorder()
	tracer := trace.NewTracerProvider(trace.WithSpanProcessor(spans)).Tracer("shop")
	ctx, span := tracer.Start(context.Background(), "show the user")
	req, _ := http.NewRequestWithContext(ctx, http.MethodGet, "https://users.example/7", http.NoBody)
	_, err := transport.RoundTrip(req)
	span.End()

	fmt.Println(err)
	refusal := spans.Ended()[0].Events()[0]
	fmt.Println(refusal.Name)
	for _, a := range refusal.Attributes {
		fmt.Println(a.Key, "=", a.Value.Emit())
	}
	// Output:
	// weirhttp: users.example is not called: breaker "users" is forced open
	// weir.refusal
	// weir.refusal.reason = open
	// weir.breaker.name = users
	// weir.breaker.state = forced_open
	// weir.host = users.example
	// weir.retry_after = 1
}

// The limit must be inside the handler of otelhttp, whose span gets the events.
func ExampleRefusedRequest() {
	limit := weirhttp.NewLimit(weirhttp.LimitConfig{
		Policies:  []weirhttp.Policy{{Name: "minute", Rate: limiter.Per(1, time.Minute), Burst: 1, By: weirhttp.ByIP}},
		OnRefusal: otelweir.RefusedRequest,
	})
	spans := tracetest.NewSpanRecorder()
	tracer := trace.NewTracerProvider(trace.WithSpanProcessor(spans)).Tracer("shop")
	handler := limit.Handler(http.NotFoundHandler())
	for range 2 {
		ctx, span := tracer.Start(context.Background(), "GET /")
		handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, http.MethodGet, "/", http.NoBody))
		span.End()
	}
	for _, span := range spans.Ended() {
		fmt.Println(len(span.Events()) > 0)
	}
	// Output:
	// false
	// true
}
