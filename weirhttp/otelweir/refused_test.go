package otelweir_test

import (
	"context"
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
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/inflight"
	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/throttle"
	"github.com/weir-go/weir/weirhttp"
	"github.com/weir-go/weir/weirhttp/otelweir"
)

func newGet(t *testing.T) *http.Request {
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://a.example/", http.NoBody)
	require.NoError(t, err)
	return req
}

// spanOf returns the span of a request while do runs.
func spanOf(t *testing.T, do func(*http.Request)) trace.ReadOnlySpan {
	ended := tracetest.NewSpanRecorder()
	tracer := trace.NewTracerProvider(trace.WithSpanProcessor(ended)).Tracer("test")
	req := newGet(t)
	ctx, span := tracer.Start(req.Context(), "call")
	do(req.WithContext(ctx))
	span.End()
	return ended.Ended()[0]
}

// refusal returns the attributes of the only event, which is a refusal.
func refusal(t *testing.T, s trace.ReadOnlySpan) []attribute.KeyValue {
	require.Equal(t, []attribute.KeyValue{attribute.Bool("weir.refused", true)}, s.Attributes())
	require.Len(t, s.Events(), 1)
	require.Equal(t, "weir.refusal", s.Events()[0].Name)
	return s.Events()[0].Attributes
}

func TestRefusedCallAddsAnEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		soon, wait := time.Now().Add(1500*time.Millisecond), attribute.Float64("weir.retry_after", 1.5)
		text := attribute.String
		host := text("weir.host", "a.example")
		for name, c := range map[string]struct {
			err  error
			want []attribute.KeyValue
		}{
			"limiter": {&limiter.LimitedError{Name: "api", Until: soon}, []attribute.KeyValue{
				text("weir.refusal.reason", "limited"), text("weir.limiter.name", "api"), host, wait,
			}},
			"hold": {&limiter.LimitedError{Name: "api", Until: soon, Reason: limiter.Held}, []attribute.KeyValue{
				text("weir.refusal.reason", "held"), text("weir.limiter.name", "api"), host, wait,
			}},
			"slots": {&inflight.FullError{Name: "api", Until: soon}, []attribute.KeyValue{
				text("weir.refusal.reason", "limited"), text("weir.limiter.name", "api"), host, wait,
			}},
			"slots, wait unknown": {&inflight.FullError{Name: "api"}, []attribute.KeyValue{
				text("weir.refusal.reason", "limited"), text("weir.limiter.name", "api"), host,
			}},
			"breaker": {&breaker.OpenError{Name: "api", Key: "k", State: breaker.Open, Until: soon}, []attribute.KeyValue{
				text("weir.refusal.reason", "open"), text("weir.breaker.name", "api"), text("weir.breaker.state", "open"),
				text("weir.group.key", "k"), host, wait,
			}},
		} {
			span := spanOf(t, func(req *http.Request) {
				otelweir.RefusedCall(req, &weirhttp.RefusedError{Host: "a.example", Err: c.err})
			})
			require.Equal(t, c.want, refusal(t, span), name)
		}
		hopeless := refusal(t, spanOf(t, func(req *http.Request) {
			otelweir.RefusedCall(req, &weirhttp.RefusedError{Err: &weir.HopelessError{Name: "api"}})
		}))
		require.Equal(t, []attribute.KeyValue{text("weir.refusal.reason", "hopeless"), text("weir.limiter.name", "api")}, hopeless[:2])
		throttled := refusal(t, spanOf(t, func(req *http.Request) {
			otelweir.RefusedCall(req, &weirhttp.RefusedError{Err: throttle.ErrRefused})
		}))
		require.Equal(t, text("weir.refusal.reason", "throttled"), throttled[0])
	})
}

func TestRefusedRequestAddsAnEvent(t *testing.T) {
	for _, c := range []struct {
		refusal weirhttp.Refusal
		want    []attribute.KeyValue
	}{
		{weirhttp.Refusal{Status: 429, Policies: []string{"second", "day"}, RetryAfter: time.Second}, []attribute.KeyValue{
			attribute.String("weir.refusal.reason", "limited"), attribute.String("weir.limiter.name", "second,day"),
			attribute.Int("http.response.status_code", 429), attribute.Float64("weir.retry_after", 1),
		}},
		{weirhttp.Refusal{Status: 503, Err: &breaker.OpenError{Name: "b", State: breaker.ForcedOpen}, RetryAfter: limiter.Never}, []attribute.KeyValue{
			attribute.String("weir.refusal.reason", "open"), attribute.String("weir.breaker.name", "b"),
			attribute.String("weir.breaker.state", "forced_open"), attribute.Int("http.response.status_code", 503),
			attribute.String("error.message", `breaker "b" is forced open`),
		}},
		{weirhttp.Refusal{Status: 503, Err: &inflight.FullError{Name: "api"}, RetryAfter: time.Millisecond}, []attribute.KeyValue{
			attribute.String("weir.refusal.reason", "limited"), attribute.String("weir.limiter.name", "api"),
			attribute.Int("http.response.status_code", 503), attribute.String("error.message", (&inflight.FullError{Name: "api"}).Error()),
		}},
		{weirhttp.Refusal{Status: 503, Policies: []string{"api"}, Err: &inflight.FullError{Name: "api"}, RetryAfter: 5 * time.Second}, []attribute.KeyValue{
			attribute.String("weir.refusal.reason", "limited"), attribute.String("weir.limiter.name", "api"),
			attribute.Int("http.response.status_code", 503), attribute.Float64("weir.retry_after", 5),
			attribute.String("error.message", (&inflight.FullError{Name: "api"}).Error()),
		}},
	} {
		require.Equal(t, c.want, refusal(t, spanOf(t, func(req *http.Request) { otelweir.RefusedRequest(req, c.refusal) })))
	}
}

func TestEveryRefusalOfASpanIsKept(t *testing.T) {
	span := spanOf(t, func(req *http.Request) {
		for _, name := range []string{"a", "b"} {
			otelweir.RefusedCall(req, &weirhttp.RefusedError{Host: name + ".example", Err: &limiter.LimitedError{Name: name}})
		}
	})
	require.Len(t, span.Events(), 2)
	require.Contains(t, span.Events()[0].Attributes, attribute.String("weir.limiter.name", "a"))
	require.Contains(t, span.Events()[1].Attributes, attribute.String("weir.limiter.name", "b"))
}

func TestATransitionIsAnEventOfTheCallThatCausedIt(t *testing.T) {
	b := breaker.New("api", breaker.Config{ConsecutiveFailures: 2, OnChange: otelweir.Changed})
	fail := func(req *http.Request) {
		_ = b.Run(req.Context(), func(context.Context) error { return errors.New("down") })
	}
	require.Empty(t, spanOf(t, fail).Events())
	events := spanOf(t, fail).Events()
	require.Len(t, events, 1)
	require.Equal(t, "weir.breaker.transition", events[0].Name)
	require.Equal(t, []attribute.KeyValue{
		attribute.String("weir.breaker.name", "api"), attribute.String("weir.breaker.state", "open"),
		attribute.String("weir.breaker.previous_state", "closed"),
		attribute.String("weir.breaker.reason", "2 failures in a row, limit 2"),
	}, events[0].Attributes)
	otelweir.Changed(breaker.Change{}) // no call, no span
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
