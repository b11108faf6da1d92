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
	"github.com/weir-go/weir/throttle"
	"github.com/weir-go/weir/weirhttp"
)

// The names of package weirgrpc, which records refusals of gRPC calls in the same way.
const (
	eventRefusal = "weir.refusal"
	keyRefused   = "weir.refused"
	keyReason    = "weir.refusal.reason"
	keyBreaker   = "weir.breaker.name"
	keyLimiter   = "weir.limiter.name"
	keyGroup     = "weir.group.key"
	keyWait      = "weir.retry_after" // in seconds
)

// RefusedCall adds an event weir.refusal to the span of the request, if there is one: see the
// package documentation. The event also has weir.host. Use RefusedCall as
// weirhttp.TransportConfig.OnRefusal.
func RefusedCall(req *http.Request, err *weirhttp.RefusedError) {
	addRefusal(req, func() []attribute.KeyValue {
		attrs := append(causeOf(err.Err), attribute.String("weir.host", err.Host))
		return appendWait(attrs, err.Err, weir.RetryAfter(err.Err))
	})
}

// RefusedRequest adds an event weir.refusal to the span of the request, if there is one: see the
// package documentation. weir.limiter.name has the names of all policies that refused the request.
// The event also has http.response.status_code, and error.message if there was an error. Use
// RefusedRequest as the OnRefusal of a weirhttp.Limit, Shed or Guard.
func RefusedRequest(req *http.Request, refusal weirhttp.Refusal) {
	addRefusal(req, func() []attribute.KeyValue {
		var attrs []attribute.KeyValue
		if len(refusal.Policies) > 0 {
			attrs = limitedBy("limited", strings.Join(refusal.Policies, ","))
		} else {
			attrs = causeOf(refusal.Err)
		}
		attrs = appendWait(append(attrs, attribute.Int("http.response.status_code", refusal.Status)), refusal.Err, refusal.RetryAfter)
		if refusal.Err != nil {
			attrs = append(attrs, attribute.String("error.message", refusal.Err.Error()))
		}
		return attrs
	})
}

// causeOf returns what refused a call, and its name.
func causeOf(err error) []attribute.KeyValue {
	if open, ok := errors.AsType[*breaker.OpenError](err); ok {
		attrs := []attribute.KeyValue{
			attribute.String(keyReason, "open"), attribute.String(keyBreaker, open.Name),
			attribute.String("weir.breaker.state", string(open.State)),
		}
		if open.Key != "" {
			attrs = append(attrs, attribute.String(keyGroup, open.Key))
		}
		return attrs
	}
	if late, ok := errors.AsType[*weir.HopelessError](err); ok {
		return limitedBy("hopeless", late.Name)
	}
	if retry, ok := errors.AsType[*weir.RetryError](err); ok {
		return limitedBy("retries", retry.Name)
	}
	if full, ok := errors.AsType[*inflight.FullError](err); ok {
		return limitedBy("limited", full.Name)
	}
	if errors.Is(err, throttle.ErrRefused) {
		return []attribute.KeyValue{attribute.String(keyReason, "throttled")}
	}
	limited, ok := errors.AsType[*limiter.LimitedError](err)
	switch {
	case !ok:
		return []attribute.KeyValue{attribute.String(keyReason, "limited")}
	case limited.Reason == limiter.Held:
		return limitedBy("held", limited.Name)
	}
	return limitedBy("limited", limited.Name)
}

func limitedBy(reason, name string) []attribute.KeyValue {
	return []attribute.KeyValue{attribute.String(keyReason, reason), attribute.String(keyLimiter, name)}
}

// appendWait appends the wait, if it is known. If the time of the next free slot is not known,
// callers are told to wait for a millisecond.
func appendWait(attrs []attribute.KeyValue, err error, wait time.Duration) []attribute.KeyValue {
	full, ok := errors.AsType[*inflight.FullError](err)
	unknown := ok && full.Until.IsZero() && wait <= time.Millisecond
	if wait > 0 && wait != limiter.Never && !unknown {
		attrs = append(attrs, attribute.Float64(keyWait, wait.Seconds()))
	}
	return attrs
}

// addRefusal adds an event to the span in the context of the request, if that span is recording.
func addRefusal(req *http.Request, attrs func() []attribute.KeyValue) {
	if span := trace.SpanFromContext(req.Context()); span.IsRecording() {
		span.SetAttributes(attribute.Bool(keyRefused, true))
		span.AddEvent(eventRefusal, trace.WithAttributes(attrs()...))
	}
}
