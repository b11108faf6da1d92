// Package otelweir records refusals of package weirhttp on the OpenTelemetry spans of requests:
//
//	transport := weirhttp.NewTransport(gate, weirhttp.TransportConfig{OnRefusal: otelweir.RefusedCall})
//
//	limit := weirhttp.NewLimit(weirhttp.LimitConfig{OnRefusal: otelweir.RefusedRequest, …})
//
// It makes no spans; package otelhttp does. If the transport of otelhttp wraps that of weirhttp,
// the attributes are on its client span. If it is the base of that of weirhttp, a refused request
// has no client span, and the attributes are on the span of the caller. On a server, the handler of
// otelhttp must wrap the middleware of weirhttp.
//
// Each refusal also sets the attribute weir.refused to true, so that such spans can be searched
// for.
package otelweir
