// Package otelweir records refusals of package weirhttp, and transitions of breakers, on the
// OpenTelemetry spans of requests:
//
//	transport := weirhttp.NewTransport(gate, weirhttp.TransportConfig{OnRefusal: otelweir.RefusedCall})
//
//	limit := weirhttp.NewLimit(weirhttp.LimitConfig{OnRefusal: otelweir.RefusedRequest, …})
//
//	gate := weir.New("users", weir.Config{Breaker: breaker.Config{OnChange: otelweir.Changed}})
//
// Package otelweir makes no spans; package otelhttp does. If the transport of otelhttp wraps the
// transport of weirhttp, the events are on the client span that otelhttp makes. If the transport of
// otelhttp is the base of the transport of weirhttp, a refused request has no client span, and the
// events are on the span of the caller. On a server, the handler of otelhttp must wrap the
// middleware of weirhttp.
//
// # Events
//
// Each refusal is an event weir.refusal, so several refusals of one span are all kept. It also sets
// the attribute weir.refused of the span to true, so that such spans can be searched for. Package
// weirgrpc records refusals in the same way:
//
//	weir.refusal.reason                     open, limited, held, throttled or hopeless.
//	weir.breaker.name or weir.limiter.name  The name of the breaker or limiter.
//	weir.group.key                          The key of the breaker, if it belongs to a group.
//	weir.breaker.state                      The state of the breaker.
//	weir.retry_after                        The wait in seconds, if it is known.
//
// A transition is an event weir.breaker.transition on the span of the call whose result caused it,
// with weir.breaker.name, weir.group.key, weir.breaker.state, weir.breaker.previous_state and
// weir.breaker.reason. If another goroutine is in OnChange at that time, that goroutine delivers
// this transition afterwards. If the span has ended by then, the event is lost.
//
// # Exemplars
//
// With breaker.Config{Latency: true, Trace: otelweir.Trace}, the histogram of the durations has
// examples of calls with their traces, as packages exporters/prom and exporters/otelmetric/producer
// export them.
package otelweir
