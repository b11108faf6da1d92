// Package otelweir puts what weirhttp refuses on the OpenTelemetry span of the request:
//
//	transport := weirhttp.NewTransport(gates, weirhttp.TransportConfig{OnRefusal: otelweir.RefusedCall})
//
//	limit := weirhttp.NewLimit(weirhttp.LimitConfig{OnRefusal: otelweir.RefusedRequest, …})
//
// It makes no spans: otelhttp does. Where otelhttp is outside of the transport, the
// attributes are on its client span; where it is inside, there is none for a call that is
// not made, and they are on the span of whoever wanted to make it. A server's span is that
// of otelhttp outside of the limit.
//
// Besides the facts of the refusal a span gets weir.refused, which is true, by which such
// spans are found.
package otelweir
