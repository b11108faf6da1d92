package recipes_test

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/dev/tests/recipes"
	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/weirgrpc"
	"github.com/weir-go/weir/weirtest"
	"github.com/weir-go/weir/window"
)

const method = "/shop.Stock/Get"

type dialer func(target string, gate *weir.Gate, options ...grpc.DialOption) (*grpc.ClientConn, error)

// connectGRPC serves every method with the handler in memory, and dials it until the test ends.
func connectGRPC(t *testing.T, gate *weir.Gate, dial dialer, handler func(grpc.ServerStream) error, rules ...weirgrpc.Rule) *grpc.ClientConn {
	listener := bufconn.Listen(1 << 16)
	guard := weirgrpc.NewServer(weirgrpc.ServerConfig{}, rules...)
	server := grpc.NewServer(grpc.StreamInterceptor(guard.Stream), grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
		if err := stream.RecvMsg(new(emptypb.Empty)); err != nil {
			return err
		}
		return handler(stream)
	}))
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(listener) })
	conn, err := dial("passthrough:///memory", gate, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }))
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, conn.Close())
		server.Stop()
		serving.Wait()
	})
	return conn
}

func invoke(t *testing.T, conn *grpc.ClientConn) error {
	return conn.Invoke(t.Context(), method, new(emptypb.Empty), new(emptypb.Empty))
}

// failing returns a handler that fails the first n attempts, and the number of attempts so far.
func failing(n int64) (handler func(grpc.ServerStream) error, attempts *atomic.Int64) {
	attempts = new(atomic.Int64)
	return func(stream grpc.ServerStream) error {
		if attempts.Add(1) <= n {
			return status.Error(codes.Unavailable, "starting")
		}
		return stream.SendMsg(new(emptypb.Empty))
	}, attempts
}

func TestAGateCountsACallWithAllItsGRPCRetriesOnce(t *testing.T) {
	for name, c := range map[string]struct {
		failed int64
		want   window.Totals
	}{
		"the third attempt succeeds": {failed: 2, want: window.Totals{Successes: 1}},
		"all attempts fail":          {failed: 3, want: window.Totals{Failures: 1, ConsecutiveFailures: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				gate := weir.New("stock", weir.Config{})
				handler, attempts := failing(c.failed)
				conn := connectGRPC(t, gate, recipes.DialRetrying, handler)
				require.Equal(t, c.want.Failures == 0, invoke(t, conn) == nil)
				require.EqualValues(t, 3, attempts.Load())
				require.Equal(t, c.want, gate.Totals())
			})
		})
	}
}

func TestAnOpenGateRetriesNothing(t *testing.T) {
	for name, dial := range map[string]dialer{"service config": recipes.DialRetrying, "interceptor": recipes.DialOutside} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				gate := weir.New("stock", weir.Config{})
				handler, attempts := failing(0)
				conn := connectGRPC(t, gate, dial, handler)
				gate.Breaker().OpenFor(time.Minute)
				weirtest.WantRefused(t, invoke(t, conn), breaker.ErrOpen)
				require.Zero(t, attempts.Load())
				require.EqualValues(t, 1, gate.Totals().Refused)
			})
		})
	}
}

func TestAGateInsideARetryingInterceptorCountsEachAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := weir.New("stock", weir.Config{})
		handler, attempts := failing(2)
		conn := connectGRPC(t, gate, recipes.DialOutside, handler)
		require.NoError(t, invoke(t, conn))
		require.EqualValues(t, 3, attempts.Load())
		require.Equal(t, window.Totals{Successes: 1, Failures: 2}, gate.Totals())
	})
}

func TestAGRPCStreamIsCountedAtItsFirstMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := weir.New("stock", weir.Config{MaxConcurrent: 1})
		conn := connectGRPC(t, gate, recipes.DialRetrying, func(stream grpc.ServerStream) error {
			if err := stream.SendMsg(new(emptypb.Empty)); err != nil {
				return err
			}
			<-stream.Context().Done()
			return status.Error(codes.Unavailable, "stopped")
		})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, method)
		require.NoError(t, err)
		require.NoError(t, stream.SendMsg(new(emptypb.Empty)))
		require.NoError(t, stream.CloseSend())
		require.Zero(t, gate.Totals())
		require.NoError(t, stream.RecvMsg(new(emptypb.Empty)))
		require.Equal(t, window.Totals{Successes: 1}, gate.Totals())
		permit, err := gate.Allow(ctx)
		require.NoError(t, err, "the stream occupies no slot after its first message")
		permit.Record(ctx, nil, breaker.Ignored)
	})
}

func TestAnInterceptorWaitsAsTheServerAsks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate, attempts := weir.New("stock", weir.Config{}), 0
		conn := connectGRPC(t, gate, recipes.DialOutside, func(stream grpc.ServerStream) error {
			if attempts++; attempts > 1 {
				return stream.SendMsg(new(emptypb.Empty))
			}
			answer, err := status.New(codes.Unavailable, "starting").WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(500 * time.Millisecond)})
			require.NoError(t, err)
			return answer.Err()
		})
		began := time.Now()
		require.NoError(t, invoke(t, conn))
		require.Equal(t, 2, attempts, "the gate has refused the second of three attempts")
		require.GreaterOrEqual(t, time.Since(began), 500*time.Millisecond)
		require.Less(t, time.Since(began), 800*time.Millisecond)
	})
}

func TestAnInterceptorRetriesOnlyAnUnavailableServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for code, want := range map[codes.Code]int{codes.Unavailable: 3, codes.InvalidArgument: 1, codes.DeadlineExceeded: 1} {
			attempts, began := 0, time.Now()
			conn := connectGRPC(t, weir.New("stock", weir.Config{}), recipes.DialOutside, func(grpc.ServerStream) error {
				attempts++
				return status.Error(code, "no")
			})
			require.Equal(t, code, status.Code(invoke(t, conn)))
			require.Equal(t, want, attempts, code)
			require.Equal(t, want > 1, time.Since(began) > 0, "a retry waits")
		}
	})
}

func TestTheGateOfAClientHoldsForARefusalOfTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate, served := weir.New("stock", weir.Config{}), 0
		limit := limiter.NewTokenBucket(limiter.TokenBucketConfig{Name: "server", Rate: limiter.PerMinute(6), Burst: 1})
		conn := connectGRPC(t, gate, recipes.DialRetrying, func(stream grpc.ServerStream) error {
			served++
			return stream.SendMsg(new(emptypb.Empty))
		}, weirgrpc.Limit(limit))
		require.NoError(t, invoke(t, conn))
		require.Equal(t, codes.ResourceExhausted, status.Code(invoke(t, conn)))
		require.EqualValues(t, 1, limit.Stats().Refused)
		time.Sleep(9 * time.Second)
		weirtest.WantRefused(t, invoke(t, conn), limiter.ErrLimited)
		require.EqualValues(t, 1, limit.Stats().Refused, "the refused call was not sent")
		time.Sleep(3 * time.Second)
		require.NoError(t, invoke(t, conn))
		require.Equal(t, 2, served)
	})
}
