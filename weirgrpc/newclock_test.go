package weirgrpc_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/inflight"
	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/weirgrpc"
)

// Clients and servers are package variables that are used with the real clock, then in two bubbles,
// and then with the real clock again. Each time a healthy service is called, although the last call
// of the clock before was refused.
func TestInterceptorsStartAgainWithEachClock(t *testing.T) {
	down := false
	answer := func() error {
		if down {
			return errorWithRetryInfo(codes.Unavailable, durationpb.New(30*time.Second))
		}
		return nil
	}
	cc := connect(t, inMemory(), nil)
	client := func() *weirgrpc.Client {
		return weirgrpc.NewClient(weirgrpc.ForAll(weir.New("client", weir.Config{})), weirgrpc.ClientConfig{})
	}
	unary, streams := client(), client()
	served := func(rule weirgrpc.Rule) func(context.Context) error {
		s := weirgrpc.NewServer(weirgrpc.ServerConfig{}, rule)
		return func(ctx context.Context) error {
			_, err := s.Unary(ctx, nil, &grpc.UnaryServerInfo{FullMethod: get}, func(context.Context, any) (any, error) { return nil, answer() })
			return err
		}
	}
	var shed func(context.Context) error
	slots := weirgrpc.NewServer(weirgrpc.ServerConfig{}, weirgrpc.Shed(inflight.New(inflight.Config{
		Limit: 3, Adaptive: true, Queue: inflight.Queue{Target: time.Millisecond},
	}), nil))
	shed = func(ctx context.Context) error {
		_, err := slots.Unary(ctx, nil, &grpc.UnaryServerInfo{FullMethod: get}, func(ctx context.Context, _ any) (any, error) {
			if down { // the call calls itself until there is no slot
				return nil, shed(ctx)
			}
			return nil, nil
		})
		return err
	}
	bucket := limiter.TokenBucketConfig{Rate: limiter.PerMinute(1), Burst: 5, Name: "limit"}
	keys := limiter.NewGroup(limiter.GroupConfig[string]{Rate: bucket.Rate, Burst: 5, Name: "keys", MaxKeys: 10})
	for name, call := range map[string]func(context.Context) error{
		"unary": func(ctx context.Context) error {
			return unary.Unary(ctx, get, nil, nil, cc, func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error { return answer() })
		},
		"stream": func(ctx context.Context) error {
			s, err := streams.Stream(ctx, &grpc.StreamDesc{}, cc, watch, func(ctx context.Context, _ *grpc.StreamDesc, _ *grpc.ClientConn, _ string, _ ...grpc.CallOption) (grpc.ClientStream, error) {
				return fakeStream{ctx: ctx}, answer()
			})
			if err == nil {
				err = s.RecvMsg(nil)
			}
			return err
		},
		"guard":   served(weirgrpc.Guard(weirgrpc.ForAll(weir.New("server", weir.Config{})))),
		"limit":   served(weirgrpc.Limit(limiter.NewTokenBucket(bucket))),
		"shed":    shed,
		"limitBy": served(weirgrpc.LimitBy(keys, func(context.Context, weirgrpc.Call) string { return "key" })),
	} {
		use := func(t *testing.T) {
			down = false
			err := call(t.Context())
			require.NoError(t, err, name)
			down = true
			for i := 0; !errors.Is(err, weir.ErrRefused); i++ {
				require.Less(t, i, 100, name)
				err = call(t.Context())
			}
			require.Positive(t, weir.RetryAfter(err), name)
			require.LessOrEqual(t, weir.RetryAfter(err), 2*time.Minute, name)
		}
		inBubble := func(t *testing.T) {
			use(t)
			time.Sleep(time.Hour)
			use(t)
		}
		use(t)
		synctest.Test(t, inBubble)
		synctest.Test(t, inBubble)
		use(t)
	}
}
