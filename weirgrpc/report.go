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

// Keys of attributes, the same in logs and spans.
const (
	keyBreaker = "weir.breaker.name"
	keyLimiter = "weir.limiter.name"
	keyGroup   = "weir.group.key"
	keyReason  = "weir.refusal.reason"
	keyWait    = "weir.retry_after" // in seconds
)

// LogRefusedCalls returns a function for ClientConfig.OnRefusal and ServerConfig.OnRefusal
// that writes refusals to the logger, as information and with the context of the call: up
// to ten a second, and with them how many were left out since the last. One function
// serves any number of clients and servers. It panics if the logger is nil.
//
// The attributes are event.name, which is weir.grpc.refusal, rpc.method, those that spans
// get too (see the package), and weir.log.left_out.
func LogRefusedCalls(logger *slog.Logger) func(context.Context, *RefusedError) {
	if logger == nil {
		panic("weirgrpc: LogRefusedCalls: the logger is nil")
	}
	pace := limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerSecond(10)})
	var left atomic.Int64
	return func(ctx context.Context, e *RefusedError) {
		if !pace.Take(1).OK {
			left.Add(1)
			return
		}
		attrs := []slog.Attr{slog.String("event.name", "weir.grpc.refusal"), slog.String("rpc.method", e.Method)}
		for _, a := range e.attributes() {
			attrs = append(attrs, slog.Any(string(a.Key), a.Value.AsInterface()))
		}
		attrs = append(attrs, slog.Int64("weir.log.left_out", left.Swap(0)))
		logger.LogAttrs(ctx, slog.LevelInfo, "call refused", attrs...)
	}
}

// refuse returns what the caller gets for the error of a rule or gate that did not let a call in. If it
// is a refusal, tell is told of it. Otherwise the context was done first, or a remote limit came to no
// decision.
func refuse(ctx context.Context, call Call, err error, tell func(context.Context, *RefusedError)) error {
	undecided, ok := errors.AsType[*undecidedError](err)
	if !ok && !errors.Is(err, weir.ErrRefused) {
		undecided = &undecidedError{err}
	}
	switch {
	case undecided == nil:
	case ctx.Err() != nil:
		return status.FromContextError(ctx.Err()).Err()
	default: // also if the error is a timeout or a refusal: it is that of the limit itself, not of the call
		return undecided
	}
	e := &RefusedError{Method: call.Method, Err: err}
	if span := trace.SpanFromContext(ctx); span.IsRecording() {
		span.SetAttributes(e.attributes()...)
	}
	if tell != nil {
		tell(ctx, e)
	}
	return e
}

// undecidedError is the error of a remote limit that came to no decision. It is the status Unavailable,
// which does not tell clients why.
type undecidedError struct{ err error }

func (e *undecidedError) Error() string {
	return "weirgrpc: a limit came to no decision: " + e.err.Error()
}

func (e *undecidedError) Unwrap() error { return e.err }

func (e *undecidedError) GRPCStatus() *status.Status {
	return status.New(codes.Unavailable, "a limit came to no decision")
}

// attributes returns the facts as spans and logs get them.
func (e *RefusedError) attributes() []attribute.KeyValue {
	why, name, key := e.cause()
	by := attribute.String(keyLimiter, name)
	if why == open {
		by = attribute.String(keyBreaker, name)
	}
	attrs := []attribute.KeyValue{attribute.String(keyReason, string(why))}
	if why != throttled {
		attrs = append(attrs, by)
	}
	if key != "" {
		attrs = append(attrs, attribute.String(keyGroup, key))
	}
	if wait, known := e.wait(); known {
		attrs = append(attrs, attribute.Float64(keyWait, wait.Seconds()))
	}
	return attrs
}
