package weirgrpc

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/limiter"
)

// LogRefusedCalls returns a function for ClientConfig.OnRefusal and ServerConfig.OnRefusal that
// logs refusals at level Info, with the context of the call. It logs up to 10 records per second.
// Each record has the number of refusals that were not logged since the last. The function can be
// used by several clients and servers. LogRefusedCalls panics if logger is nil.
//
// The attributes are event.name, which is weir.grpc.refusal; rpc.method; those of spans (see the
// package documentation); and weir.log.left_out, the number of refusals that were not logged.
func LogRefusedCalls(logger *slog.Logger) func(context.Context, *RefusedError) {
	if logger == nil {
		panic(errors.New("weirgrpc: LogRefusedCalls needs a logger"))
	}
	pace := limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerSecond(10)})
	var leftOut atomic.Int64
	return func(ctx context.Context, e *RefusedError) {
		if !pace.Take(1).OK {
			leftOut.Add(1)
			return
		}
		attrs := []slog.Attr{slog.String("event.name", "weir.grpc.refusal"), slog.String("rpc.method", e.Method)}
		for _, a := range e.attributes() {
			attrs = append(attrs, slog.Any(string(a.Key), a.Value.AsInterface()))
		}
		attrs = append(attrs, slog.Int64("weir.log.left_out", leftOut.Swap(0)))
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
	default: // the error may be a timeout or a refusal, but that of the limit itself
		return undecided
	}
	e := &RefusedError{Method: call.Method, Err: err}
	if span := trace.SpanFromContext(ctx); span.IsRecording() {
		span.SetAttributes(e.attributes()...)
	}
	if onRefusal != nil {
		onRefusal(ctx, e)
	}
	return e
}

// undecidedError is the error of a remote limit that came to no decision. Its status is Unavailable
// and does not tell clients the cause.
type undecidedError struct{ err error }

func (e *undecidedError) Error() string {
	return "weirgrpc: a limit came to no decision: " + e.err.Error()
}

func (e *undecidedError) Unwrap() error { return e.err }

func (e *undecidedError) GRPCStatus() *status.Status {
	return status.New(codes.Unavailable, "a limit came to no decision")
}

// Keys of attributes, the same in logs and spans.
const (
	keyBreaker = "weir.breaker.name"
	keyLimiter = "weir.limiter.name"
	keyGroup   = "weir.group.key"
	keyReason  = "weir.refusal.reason"
	keyWait    = "weir.retry_after" // in seconds
)

// attributes returns the refusal as attributes of spans and logs.
func (e *RefusedError) attributes() []attribute.KeyValue {
	why, name, key := e.cause()
	attrs := []attribute.KeyValue{attribute.String(keyReason, string(why))}
	switch why {
	case open:
		attrs = append(attrs, attribute.String(keyBreaker, name))
	case limited, held, hopeless:
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
