package weirgrpc

import (
	"cmp"
	"context"
	"errors"
	"log/slog"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
)

// LogRefusedCalls returns a function for ClientConfig.OnRefusal and ServerConfig.OnRefusal that
// logs refusals at level Info, with the context of the call. It logs up to 10 records per second,
// and up to one per second of the same breaker or limiter, key and reason. Each record has the
// number of refusals that were not logged since the last. The function can be used by several
// clients and servers. LogRefusedCalls panics if logger is nil.
//
// The attributes are event.name, which is weir.refusal; those of spans (see the package
// documentation); rpc.method; error.message; and weir.log.left_out, the number of refusals that
// were not logged. Package weirhttp uses the same words.
func LogRefusedCalls(logger *slog.Logger) func(context.Context, *RefusedError) {
	if logger == nil {
		panic(errors.New("weirgrpc: LogRefusedCalls needs a logger"))
	}
	var sampler sampler
	return func(ctx context.Context, e *RefusedError) {
		why, name, key := e.cause()
		leftOut, ok := sampler.sample(sampled{why, name, cmp.Or(key, e.Method)})
		if !ok {
			return
		}
		attrs := []slog.Attr{slog.String("event.name", eventRefusal)}
		for _, a := range e.attributes() {
			attrs = append(attrs, slog.Any(string(a.Key), a.Value.AsInterface()))
		}
		attrs = append(attrs, slog.String("rpc.method", e.Method), slog.String("error.message", e.Err.Error()),
			slog.Int64("weir.log.left_out", leftOut))
		logger.LogAttrs(ctx, slog.LevelInfo, "call refused", attrs...)
	}
}

// refuse returns the error for the caller of a call that a gate or rule did not admit. If the call
// was refused, refuse reports it to the span and to onRefusal. Otherwise the context was done, or a
// remote limit came to no decision.
func refuse(ctx context.Context, call Call, err error, onRefusal func(context.Context, *RefusedError)) error {
	undecided, ok := errors.AsType[*undecidedError](err)
	if !ok && !errors.Is(err, weir.ErrRefused) {
		undecided = &undecidedError{err}
	}
	switch {
	case undecided == nil:
	case ctx.Err() != nil:
		return status.FromContextError(ctx.Err()).Err()
	default: // the error may be a timeout or a refusal of a service that the limit uses
		return undecided
	}
	e := &RefusedError{Method: call.Method, Err: err}
	if span := trace.SpanFromContext(ctx); span.IsRecording() {
		span.SetAttributes(attribute.Bool(keyRefused, true))
		span.AddEvent(eventRefusal, trace.WithAttributes(e.attributes()...))
	}
	if onRefusal != nil {
		onRefusal(ctx, e)
	}
	return e
}

// undecidedError is the error of a remote limit that came to no decision. Its status is Unavailable
// and does not reveal the cause to clients.
type undecidedError struct{ err error }

func (e *undecidedError) Error() string {
	return "weirgrpc: a limit came to no decision: " + e.err.Error()
}

func (e *undecidedError) Unwrap() error { return e.err }

func (e *undecidedError) GRPCStatus() *status.Status {
	return status.New(codes.Unavailable, "a limit came to no decision")
}

// Keys of attributes, the same in logs and spans, and in package otelweir for HTTP.
const (
	eventRefusal = "weir.refusal" // an event of a span or log
	keyRefused   = "weir.refused" // an attribute of a span
	keyState     = "weir.breaker.state"
	keyBreaker   = "weir.breaker.name"
	keyLimiter   = "weir.limiter.name"
	keyGroup     = "weir.group.key"
	keyReason    = "weir.refusal.reason"
	keyWait      = "weir.retry_after" // in seconds
)

// attributes returns the refusal as attributes of spans and logs.
func (e *RefusedError) attributes() []attribute.KeyValue {
	why, name, key := e.cause()
	attrs := []attribute.KeyValue{attribute.String(keyReason, string(why))}
	switch why {
	case open:
		by, _ := errors.AsType[*breaker.OpenError](e.Err)
		attrs = append(attrs, attribute.String(keyBreaker, name), attribute.String(keyState, string(by.State)))
	case limited, held, hopeless, retries:
		attrs = append(attrs, attribute.String(keyLimiter, name))
	case throttled:
	}
	if key != "" {
		attrs = append(attrs, attribute.String(keyGroup, key))
	}
	if wait, known := e.wait(); known {
		attrs = append(attrs, attribute.Float64(keyWait, wait.Seconds()))
	}
	return attrs
}
