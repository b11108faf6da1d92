package weirgrpc

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/weir-go/weir/limiter"
)

func TestRetryAfterOfErrors(t *testing.T) {
	busy := func(d *durationpb.Duration) error {
		s, err := status.New(codes.Unavailable, "").WithDetails(&errdetails.RetryInfo{RetryDelay: d})
		require.NoError(t, err)
		return s.Err()
	}
	garbage := status.New(codes.Unavailable, "").Proto() // gets malformed details
	garbage.Details = []*anypb.Any{{TypeUrl: "type.googleapis.com/google.rpc.RetryInfo", Value: []byte{0xff, 0xff}}, {TypeUrl: "nonsense"}, {}}
	for want, err := range map[time.Duration]error{
		0:               nil,
		1:               fmt.Errorf("wrapped: %w", busy(durationpb.New(1))),
		math.MaxInt64:   &limiter.LimitedError{},
		2 * time.Second: busy(durationpb.New(2 * time.Second)),
	} {
		require.Equal(t, want, retryAfter(err), err)
	}
	for _, err := range []error{status.FromProto(garbage).Err(), errors.New("any"), context.Canceled, busy(durationpb.New(-1)), busy(nil)} {
		require.Zero(t, retryAfter(err), err)
	}
}
