package otelweir_test

import (
	"net/http"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/weirhttp"
	"github.com/weir-go/weir/weirhttp/otelweir"
)

func newGet(t *testing.T) *http.Request {
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://a.example/", http.NoBody)
	require.NoError(t, err)
	return req
}

// attributes are those that do puts on a span of its own.
func attributes(t *testing.T, do func(*http.Request)) []attribute.KeyValue {
	ended := tracetest.NewSpanRecorder()
	tracer := trace.NewTracerProvider(trace.WithSpanProcessor(ended)).Tracer("test")
	req := newGet(t)
	ctx, span := tracer.Start(req.Context(), "call")
	do(req.WithContext(ctx))
	span.End()
	return ended.Ended()[0].Attributes()
}

func TestCallThatIsLimitedMarksTheSpan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refused := &weirhttp.RefusedError{Host: "a.example", Err: &limiter.LimitedError{Name: "api", Until: time.Now().Add(1500 * time.Millisecond)}}
		require.Equal(t, []attribute.KeyValue{
			attribute.Bool("weir.refused", true), attribute.String("weir.host", "a.example"),
			attribute.String("weir.limiter.name", "api"), attribute.Float64("weir.retry_after", 1.5),
		}, attributes(t, func(req *http.Request) { otelweir.RefusedCall(req, refused) }))
	})
}

func TestRequestThatIsLimitedMarksTheSpan(t *testing.T) {
	refusal := weirhttp.Refusal{Status: 429, Policies: []string{"second"}, RetryAfter: time.Second, IP: netip.MustParseAddr("192.0.2.1"), Route: "GET /"}
	got := attributes(t, func(req *http.Request) { otelweir.RefusedRequest(req, refusal) })
	require.Subset(t, got, []attribute.KeyValue{
		attribute.Bool("weir.refused", true), attribute.Int("http.response.status_code", 429), attribute.String("client.address", "192.0.2.1"),
	})
	require.Len(t, got, 1+len(refusal.Attrs()))
}

func TestSpanThatDoesNotRecordCostsNothing(t *testing.T) {
	req := newGet(t)
	refused := &weirhttp.RefusedError{Host: "a.example", Err: weir.ErrRefused}
	require.Zero(t, testing.AllocsPerRun(100, func() { otelweir.RefusedCall(req, refused) }), "no span")

	tracer := trace.NewTracerProvider(trace.WithSampler(trace.NeverSample())).Tracer("test")
	ctx, span := tracer.Start(req.Context(), "call")
	defer span.End()
	req = req.WithContext(ctx)
	require.Zero(t, testing.AllocsPerRun(100, func() { otelweir.RefusedCall(req, refused) }), "not sampled")
}
