package otelweir

import (
	"log/slog"
	"math"
	"net/http"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/weir-go/weir/weirhttp"
)

// RefusedCall sets the attributes of [weirhttp.RefusedError.Attrs] on the span in the context of the
// request, if that is recording; if not it costs next to nothing. It is a value for
// weirhttp.TransportConfig.OnRefusal.
func RefusedCall(req *http.Request, err *weirhttp.RefusedError) {
	mark(req, func() []slog.Attr { return err.Attrs() })
}

// RefusedRequest sets the status of the response, the policies that refused the request, and the wait
// likewise: http.response.status_code, weir.limiter.name, weir.retry_after in seconds, and error. It is
// a value for the OnRefusal of weirhttp.LimitConfig and of other middleware that refuses requests.
func RefusedRequest(req *http.Request, refusal weirhttp.Refusal) {
	mark(req, func() []slog.Attr {
		attrs := []slog.Attr{slog.Int("http.response.status_code", refusal.Status)}
		if len(refusal.Policies) > 0 {
			attrs = append(attrs, slog.String("weir.limiter.name", strings.Join(refusal.Policies, ",")))
		}
		if d := refusal.RetryAfter; d > 0 && d != math.MaxInt64 { // limiter.Never
			attrs = append(attrs, slog.Float64("weir.retry_after", d.Seconds()))
		}
		if refusal.Err != nil {
			attrs = append(attrs, slog.Any("error", refusal.Err))
		}
		return attrs
	})
}

func mark(req *http.Request, facts func() []slog.Attr) {
	span := trace.SpanFromContext(req.Context())
	if !span.IsRecording() {
		return
	}
	attrs := []attribute.KeyValue{attribute.Bool("weir.refused", true)}
	for _, a := range facts() {
		attrs = append(attrs, keyValue(a))
	}
	span.SetAttributes(attrs...)
}

func keyValue(a slog.Attr) attribute.KeyValue {
	switch v := a.Value.Resolve(); v.Kind() {
	case slog.KindInt64:
		return attribute.Int64(a.Key, v.Int64())
	case slog.KindFloat64:
		return attribute.Float64(a.Key, v.Float64())
	default:
		return attribute.String(a.Key, v.String())
	}
}
