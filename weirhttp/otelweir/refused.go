package otelweir

import (
	"errors"
	"net/http"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/inflight"
	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/weirhttp"
)

// RefusedCall sets attributes on the span of the request, if there is one: weir.host;
// weir.breaker.name and weir.breaker.state, or weir.limiter.name; and weir.retry_after in seconds,
// if it is known. Use it as weirhttp.TransportConfig.OnRefusal.
func RefusedCall(req *http.Request, err *weirhttp.RefusedError) {
	setAttributes(req, func() []attribute.KeyValue {
		attrs := []attribute.KeyValue{attribute.String("weir.host", err.Host)}
		if open, ok := errors.AsType[*breaker.OpenError](err.Err); ok {
			attrs = append(attrs, attribute.String("weir.breaker.name", open.Name), attribute.String("weir.breaker.state", string(open.State)))
		}
		if limited, ok := errors.AsType[*limiter.LimitedError](err.Err); ok {
			attrs = append(attrs, attribute.String("weir.limiter.name", limited.Name))
		}
		if full, ok := errors.AsType[*inflight.FullError](err.Err); ok {
			attrs = append(attrs, attribute.String("weir.limiter.name", full.Name))
		}
		if late, ok := errors.AsType[*weir.HopelessError](err.Err); ok {
			attrs = append(attrs, attribute.String("weir.limiter.name", late.Name))
		}
		return appendWait(attrs, weir.RetryAfter(err.Err))
	})
}

// RefusedRequest sets attributes on the span of the request, if there is one:
// http.response.status_code; weir.limiter.name, with the names of the policies that refused the
// request; weir.retry_after in seconds; and error. Use it as the OnRefusal of a weirhttp.Limit,
// Shed or Guard.
func RefusedRequest(req *http.Request, refusal weirhttp.Refusal) {
	setAttributes(req, func() []attribute.KeyValue {
		attrs := []attribute.KeyValue{attribute.Int("http.response.status_code", refusal.Status)}
		if len(refusal.Policies) > 0 {
			attrs = append(attrs, attribute.String("weir.limiter.name", strings.Join(refusal.Policies, ",")))
		}
		attrs = appendWait(attrs, refusal.RetryAfter)
		if refusal.Err != nil {
			attrs = append(attrs, attribute.String("error", refusal.Err.Error()))
		}
		return attrs
	})
}

func appendWait(attrs []attribute.KeyValue, wait time.Duration) []attribute.KeyValue {
	if wait > 0 && wait != limiter.Never {
		attrs = append(attrs, attribute.Float64("weir.retry_after", wait.Seconds()))
	}
	return attrs
}

// setAttributes sets the attributes on the span in the context of the request, if that is
// recording.
func setAttributes(req *http.Request, attrs func() []attribute.KeyValue) {
	if span := trace.SpanFromContext(req.Context()); span.IsRecording() {
		span.SetAttributes(append([]attribute.KeyValue{attribute.Bool("weir.refused", true)}, attrs()...)...)
	}
}
