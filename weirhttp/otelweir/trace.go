package otelweir

import (
	"context"

	"go.opentelemetry.io/otel/trace"
)

// Trace returns the IDs of the trace and the span in ctx, or "" if there is none or it is not
// sampled. Use it as breaker.Config.Trace, for calls of any kind.
func Trace(ctx context.Context) (traceID, spanID string) {
	span := trace.SpanContextFromContext(ctx)
	if !span.IsSampled() {
		return "", ""
	}
	return span.TraceID().String(), span.SpanID().String()
}
