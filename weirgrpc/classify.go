package weirgrpc

import (
	"context"
	"errors"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
)

// DefaultClassify is the verdict on the error of a call where the config has none of its own:
//
//   - Unavailable, DeadlineExceeded, ResourceExhausted, Internal, Unknown, DataLoss, and
//     codes that gRPC does not have, are failures,
//   - Canceled is ignored, and so is what matches weir.ErrRefused: a gate of this
//     process refused, so the service never saw the call,
//   - no error and all other codes are successes: a service that says "not found" has
//     done its work.
//
// An error that is no status counts as what gRPC makes of it: Unknown, or the code of a
// context's error. It can stand as the Classify of a breaker.Config too.
func DefaultClassify(err error) breaker.Outcome {
	if errors.Is(err, weir.ErrRefused) {
		return breaker.Ignored
	}
	switch c := code(err); c {
	case codes.Canceled:
		return breaker.Ignored
	case codes.Unavailable, codes.DeadlineExceeded, codes.ResourceExhausted, codes.Internal, codes.Unknown, codes.DataLoss:
		return breaker.Failure
	default:
		if c > codes.Unauthenticated { // the last there is
			return breaker.Failure
		}
		return breaker.Success
	}
}

// code returns the code with which gRPC sends err, or OK.
func code(err error) codes.Code {
	if s, ok := status.FromError(err); ok {
		return s.Code()
	}
	return status.FromContextError(err).Code()
}

// gaveUp reports whether a call failed after its context was cancelled: by its caller or, on a server,
// because the client went away. The cancellation may be the cause whatever the error says.
func gaveUp(ctx context.Context, err error) bool {
	return err != nil && errors.Is(ctx.Err(), context.Canceled)
}

func orClassify(f func(error) breaker.Outcome) func(error) breaker.Outcome {
	if f == nil {
		return DefaultClassify
	}
	return f
}
