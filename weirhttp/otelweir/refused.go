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
	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/weirhttp"
)

// RefusedCall sets attributes on the span in the context of the request, if that is recording:
// weir.host; what refused the request, as weir.breaker.name and weir.breaker.state, or as
// weir.limiter.name; and weir.retry_after in seconds, if it is known. It is a value for
// weirhttp.TransportConfig.OnRefusal.
func RefusedCall(req *http.Request, err *weirhttp.RefusedError) {
	mark(req, func() []attribute.KeyValue {
		attrs := []attribute.KeyValue{attribute.String("weir.host", err.Host)}
		if open, ok := errors.AsType[*breaker.OpenError](err.Err); ok {
			attrs = append(attrs, attribute.String("weir.breaker.name", open.Name), attribute.String("weir.breaker.state", string(open.State)))
		}
		if limited, ok := errors.AsType[*limiter.LimitedError](err.Err); ok {
			attrs = append(attrs, attribute.String("weir.limiter.name", limited.Name))
		}
		return appendWait(attrs, weir.RetryAfter(err.Err))
	})
}

// RefusedRequest sets the status of the response, the policies that refused the request, and the wait
// likewise: http.response.status_code, weir.limiter.name, weir.retry_after in seconds, and error. It is
// a value for the OnRefusal of weirhttp.LimitConfig and of other middleware that refuses requests.
func RefusedRequest(req *http.Request, refusal weirhttp.Refusal) {
	mark(req, func() []attribute.KeyValue {
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

func mark(req *http.Request, facts func() []attribute.KeyValue) {
	if span := trace.SpanFromContext(req.Context()); span.IsRecording() {
		span.SetAttributes(append([]attribute.KeyValue{attribute.Bool("weir.refused", true)}, facts()...)...)
	}
}
