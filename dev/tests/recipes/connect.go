package recipes

import (
	"context"

	"connectrpc.com/connect"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
)

//readme:connect

// ConnectGate returns an interceptor that makes unary calls through the gate.
func ConnectGate(gate *weir.Gate) connect.UnaryInterceptorFunc {
	return func(next connect.UnaryFunc) connect.UnaryFunc {
		return func(ctx context.Context, req connect.AnyRequest) (connect.AnyResponse, error) {
			return weir.DoResult(ctx, gate, func(ctx context.Context) (connect.AnyResponse, error) {
				return next(ctx, req)
			}, connectOutcome)
		}
	}
}

//readme:end

//readme:outcome
func connectOutcome(_ connect.AnyResponse, err error) breaker.Outcome {
	if err == nil {
		return breaker.Success
	}
	switch connect.CodeOf(err) {
	case connect.CodeResourceExhausted:
		return breaker.Overloaded
	case connect.CodeUnavailable, connect.CodeDeadlineExceeded, connect.CodeInternal, connect.CodeUnknown, connect.CodeDataLoss:
		return breaker.Failure
	case connect.CodeCanceled:
		return breaker.Ignored
	default: // the service works, and answers such as "not found"
		return breaker.Success
	}
}

//readme:end
