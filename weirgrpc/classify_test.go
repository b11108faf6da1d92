package weirgrpc_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/weirgrpc"
)

func TestCodesAreClassified(t *testing.T) {
	want := map[codes.Code]breaker.Outcome{
		codes.Canceled:         breaker.Ignored,
		codes.Unknown:          breaker.Failure,
		codes.DeadlineExceeded: breaker.Failure, codes.ResourceExhausted: breaker.Overloaded, codes.Internal: breaker.Failure,
		codes.Unavailable: breaker.Failure, codes.DataLoss: breaker.Failure,
		17: breaker.Failure, 1 << 31: breaker.Failure,
	}
	for c := codes.Canceled; c <= codes.Unauthenticated; c++ {
		// codes that are not in the map are successes
		require.Equal(t, want[c], weirgrpc.DefaultClassify(status.Error(c, "")), c)
		require.Equal(t, want[c], weirgrpc.DefaultClassify(fmt.Errorf("wrapped: %w", status.Error(c, ""))), c)
	}
	for c, outcome := range want {
		require.Equal(t, outcome, weirgrpc.DefaultClassify(status.Error(c, "")), c)
	}
}

func TestOtherErrorsAreClassifiedAsGRPCSendsThem(t *testing.T) {
	for _, step := range []struct {
		err  error
		want breaker.Outcome
	}{
		{nil, breaker.Success},
		{errors.New("any"), breaker.Failure},
		{fmt.Errorf("db: %w", context.Canceled), breaker.Ignored},
		{fmt.Errorf("db: %w", context.DeadlineExceeded), breaker.Failure},
		{&breaker.OpenError{}, breaker.Ignored},
		{fmt.Errorf("inner: %w", &limiter.LimitedError{}), breaker.Ignored},
		{&limiter.LimitedError{Reason: limiter.PastDue}, breaker.Ignored},
		{&weirgrpc.RefusedError{Err: &breaker.OpenError{}}, breaker.Ignored},
	} {
		require.Equal(t, step.want, weirgrpc.DefaultClassify(step.err), "%v", step.err)
	}
}
