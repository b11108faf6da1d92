package otelweir_test

import (
	"errors"
	"net/http"
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

// attributes returns the attributes that do sets on the span of a request.
func attributes(t *testing.T, do func(*http.Request)) []attribute.KeyValue {
	ended := tracetest.NewSpanRecorder()
	tracer := trace.NewTracerProvider(trace.WithSpanProcessor(ended)).Tracer("test")
	req := newGet(t)
	ctx, span := tracer.Start(req.Context(), "call")
	do(req.WithContext(ctx))
	span.End()
	return ended.Ended()[0].Attributes()
}

func TestRefusedCallSetsAttributes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refused := &weirhttp.RefusedError{Host: "a.example", Err: &limiter.LimitedError{Name: "api", Until: time.Now().Add(1500 * time.Millisecond)}}
		require.Equal(t, []attribute.KeyValue{
			attribute.Bool("weir.refused", true), attribute.String("weir.host", "a.example"),
			attribute.String("weir.limiter.name", "api"), attribute.Float64("weir.retry_after", 1.5),
		}, attributes(t, func(req *http.Request) { otelweir.RefusedCall(req, refused) }))
	})
}

func TestRefusedRequestSetsAttributes(t *testing.T) {
	for _, c := range []struct {
		refusal weirhttp.Refusal
		want    []attribute.KeyValue
	}{
		{weirhttp.Refusal{Status: 429, Policies: []string{"second", "day"}, RetryAfter: time.Second}, []attribute.KeyValue{
			attribute.Bool("weir.refused", true), attribute.Int("http.response.status_code", 429),
			attribute.String("weir.limiter.name", "second,day"), attribute.Float64("weir.retry_after", 1),
		}},
		{weirhttp.Refusal{Status: 503, Err: errors.New("open"), RetryAfter: limiter.Never}, []attribute.KeyValue{
			attribute.Bool("weir.refused", true), attribute.Int("http.response.status_code", 503), attribute.String("error", "open"),
		}},
	} {
		require.Equal(t, c.want, attributes(t, func(req *http.Request) { otelweir.RefusedRequest(req, c.refusal) }))
	}
}

func TestNoRecordingSpanAllocatesNothing(t *testing.T) {
	req := newGet(t)
	refused := &weirhttp.RefusedError{Host: "a.example", Err: weir.ErrRefused}
	require.Zero(t, testing.AllocsPerRun(100, func() { otelweir.RefusedCall(req, refused) }), "no span")

	tracer := trace.NewTracerProvider(trace.WithSampler(trace.NeverSample())).Tracer("test")
	ctx, span := tracer.Start(req.Context(), "call")
	defer span.End()
	req = req.WithContext(ctx)
	require.Zero(t, testing.AllocsPerRun(100, func() { otelweir.RefusedCall(req, refused) }), "not sampled")
}
