package weirgrpc_test

import (
	"context"
	"errors"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/weirgrpc"
)

// retryInfoCases are errors of a service, and how long the gate is held because of them.
var retryInfoCases = map[string]struct {
	err    error
	config weirgrpc.ClientConfig
	want   time.Duration
}{
	"asked for":       {errorWithRetryInfo(codes.ResourceExhausted, durationpb.New(30*time.Second)), weirgrpc.ClientConfig{}, 30 * time.Second},
	"too long":        {errorWithRetryInfo(codes.Unavailable, durationpb.New(time.Hour)), weirgrpc.ClientConfig{}, time.Minute},
	"beyond all time": {errorWithRetryInfo(codes.Unavailable, &durationpb.Duration{Seconds: math.MaxInt64, Nanos: math.MaxInt32}), weirgrpc.ClientConfig{}, time.Minute},
	"bounded":         {errorWithRetryInfo(codes.Unavailable, durationpb.New(time.Hour)), weirgrpc.ClientConfig{MaxRetryAfter: 2 * time.Second}, 2 * time.Second},
	"off":             {errorWithRetryInfo(codes.Unavailable, durationpb.New(time.Hour)), weirgrpc.ClientConfig{MaxRetryAfter: breaker.Off}, 0},
	"negative":        {errorWithRetryInfo(codes.Unavailable, durationpb.New(-time.Hour)), weirgrpc.ClientConfig{}, 0},
	"none":            {errorWithRetryInfo(codes.Unavailable, nil), weirgrpc.ClientConfig{}, 0},
	"no failure":      {errorWithRetryInfo(codes.NotFound, durationpb.New(time.Hour)), weirgrpc.ClientConfig{}, 0},
	"garbage":         {malformedDetails(), weirgrpc.ClientConfig{}, 0},
}

func TestRetryInfoIsObeyed(t *testing.T) {
	for name, step := range retryInfoCases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var opened time.Time
				config := weir.Config{Rate: limiter.PerSecond(1000), Breaker: breaker.Config{
					ConsecutiveFailures: 2, Cooldown: time.Second, CooldownJitter: breaker.Off,
					OnChange: func(c breaker.Change) { opened = c.At },
				}}
				gates := weir.NewGroup[string]("shop", weir.GroupConfig{Gate: config})
				client := weirgrpc.NewClient(weirgrpc.Per(gates, func(context.Context, weirgrpc.Call) string { return "a" }), step.config)
				shop := &service{unary: func(context.Context, string) (string, error) { return "", step.err }}
				cc := serve(t, inMemory(), shop, nil, client)
				_, err := call(t.Context(), cc, get, "")
				require.Equal(t, status.Code(step.err), status.Code(err))

				_, err = call(t.Context(), cc, get, "")
				require.InDelta(t, step.want, weir.RetryAfter(err), float64(2*time.Millisecond), "the gate is held: %v", err)
				require.Equal(t, step.want > 0, errors.Is(err, limiter.ErrLimited), err)
				if step.want > 0 {
					time.Sleep(weir.RetryAfter(err))
					_, _ = call(t.Context(), cc, get, "")
				}
				b := gates.Get("a").Breaker()
				require.Equal(t, status.Code(step.err) != codes.NotFound, b.Tripped())
				if b.Tripped() {
					left := time.Until(opened) + max(step.want, time.Second)
					_, err := b.Allow()
					require.InDelta(t, left, weir.RetryAfter(err), float64(time.Millisecond), "the breaker stays open")
				}
			})
		})
	}
}

// malformedDetails returns a failure with malformed details.
func malformedDetails() error {
	p := status.New(codes.Unavailable, "").Proto()
	p.Details = []*anypb.Any{{TypeUrl: "type.googleapis.com/google.rpc.RetryInfo", Value: []byte{0xff, 0xff}}, {TypeUrl: "nonsense"}, {}}
	return status.FromProto(p).Err()
}
