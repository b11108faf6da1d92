package otelweir

import (
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/weir-go/weir/breaker"
)

// Changed adds an event weir.breaker.transition to the span of the call that caused the change, if
// that span is recording: see the package documentation. A change that no call caused has no span.
// Use it as breaker.Config.OnChange, for calls of any kind.
func Changed(c breaker.Change) {
	span := trace.SpanFromContext(c.Context())
	if !span.IsRecording() {
		return
	}
	attrs := []attribute.KeyValue{
		attribute.String(keyBreaker, c.Name), attribute.String("weir.breaker.state", string(c.To)),
		attribute.String("weir.breaker.previous_state", string(c.From)), attribute.String("weir.breaker.reason", c.Reason),
	}
	if c.Key != "" {
		attrs = append(attrs, attribute.String(keyGroup, c.Key))
	}
	span.AddEvent("weir.breaker.transition", trace.WithAttributes(attrs...))
}
