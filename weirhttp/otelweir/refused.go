package otelweir

import (
	"log/slog"
	"net/http"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/weir-go/weir/weirhttp"
)

// RefusedCall sets the attributes of [weirhttp.RefusedError.Attrs] on the span in the
// request's context, if that is recording; if not it costs next to nothing. It is a value
// for weirhttp.TransportConfig.OnRefusal.
func RefusedCall(req *http.Request, err *weirhttp.RefusedError) { mark(req, err) }

// RefusedRequest sets the attributes of [weirhttp.Refusal.Attrs] likewise. It is a value
// for the OnRefusal of weirhttp.LimitConfig, and of whatever else refuses requests.
func RefusedRequest(req *http.Request, refusal weirhttp.Refusal) { mark(req, &refusal) }

func mark(req *http.Request, refusal interface{ Attrs() []slog.Attr }) {
	span := trace.SpanFromContext(req.Context())
	if !span.IsRecording() {
		return
	}
	attrs := []attribute.KeyValue{attribute.Bool("weir.refused", true)}
	for _, a := range refusal.Attrs() {
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
