package otelweir_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/sdk/trace"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/stat"
	"github.com/weir-go/weir/weirhttp/otelweir"
)

func TestTraceNamesSampledSpansAlone(t *testing.T) {
	id, span := otelweir.Trace(t.Context())
	require.Empty(t, id+span)

	ctx, unsampled := trace.NewTracerProvider(trace.WithSampler(trace.NeverSample())).Tracer("t").Start(t.Context(), "s")
	defer unsampled.End()
	id, span = otelweir.Trace(ctx)
	require.Empty(t, id+span)

	ctx, sampled := trace.NewTracerProvider().Tracer("t").Start(t.Context(), "s")
	defer sampled.End()
	b := breaker.New("b", breaker.Config{Latency: true, Trace: otelweir.Trace})
	require.NoError(t, b.Run(ctx, func(context.Context) error { return nil }))
	var list []stat.Exemplar
	for _, h := range b.Histograms {
		list = append(list, h.Exemplars...)
	}
	require.Len(t, list, 1)
	require.Equal(t, sampled.SpanContext().TraceID().String(), list[0].TraceID)
	require.Equal(t, sampled.SpanContext().SpanID().String(), list[0].SpanID)
}
