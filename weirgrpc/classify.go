package weirgrpc

import (
	"context"
	"errors"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
)

// DefaultClassify returns the outcome of a call by its error:
//
//   - The codes Unavailable, DeadlineExceeded, Internal, Unknown and DataLoss, and codes that gRPC
//     does not define, are failures.
//   - The code ResourceExhausted is the service's own word that it is overloaded:
//     breaker.Overloaded, which is a failure too.
//   - The code Canceled is ignored.
//   - An error that matches weir.ErrRefused is ignored. Another gate of this process refused the
//     call, so the service never got it.
//   - No error and all other codes are successes. A service that answers "not found" works.
//
// An error that is not a status has the code that gRPC gives it: DeadlineExceeded or Canceled for a
// context error, and Unknown for any other error. DefaultClassify can also be the Classify of a
// breaker.Config.
func DefaultClassify(err error) breaker.Outcome {
	if errors.Is(err, weir.ErrRefused) {
		return breaker.Ignored
	}
	switch c := code(err); c {
	case codes.Canceled:
		return breaker.Ignored
	case codes.ResourceExhausted:
		return breaker.Overloaded
	case codes.Unavailable, codes.DeadlineExceeded, codes.Internal, codes.Unknown, codes.DataLoss:
		return breaker.Failure
	default:
		if c > codes.Unauthenticated { // the last code that gRPC defines
			return breaker.Failure
		}
		return breaker.Success
	}
}

// code returns the code with which gRPC sends err.
func code(err error) codes.Code {
	if s, ok := status.FromError(err); ok {
		return s.Code()
	}
	return status.FromContextError(err).Code()
}

// cancelled reports whether a call failed after its context was cancelled: by its caller or, on a
// server, because the client disconnected. The error itself may name a different cause.
func cancelled(ctx context.Context, err error) bool {
	return err != nil && errors.Is(ctx.Err(), context.Canceled)
}

func classifyOrDefault(f func(error) breaker.Outcome) func(error) breaker.Outcome {
	if f == nil {
		return DefaultClassify
	}
	return f
}
