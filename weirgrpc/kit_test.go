package weirgrpc_test

import (
	"context"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/weirgrpc"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Methods of the test service.
const (
	get   = "/test.Shop/Get"
	put   = "/test.Shop/Put"
	other = "/test.Bank/Get"
	watch = "/test.Shop/Watch" // the server streams
	chat  = "/test.Shop/Chat"  // both sides stream
)

// service is the test service. Methods without a function echo.
type service struct {
	unary  func(ctx context.Context, in string) (string, error)
	stream func(s grpc.ServerStream) error
}

func (s *service) call(ctx context.Context, in string) (string, error) {
	if s.unary == nil {
		return in, nil
	}
	return s.unary(ctx, in)
}

func unaryMethod(name string) grpc.MethodDesc {
	full := func(srv string) string { return "/" + srv + "/" + name }
	return grpc.MethodDesc{MethodName: name, Handler: func(srv any, ctx context.Context, dec func(any) error, ic grpc.UnaryServerInterceptor) (any, error) {
		in := new(wrapperspb.StringValue)
		if err := dec(in); err != nil {
			return nil, err
		}
		handler := func(ctx context.Context, req any) (any, error) {
			out, err := srv.(*service).call(ctx, req.(*wrapperspb.StringValue).Value)
			return wrapperspb.String(out), err
		}
		if ic == nil {
			return handler(ctx, in)
		}
		method, _ := grpc.Method(ctx)
		if method == "" {
			method = full("test.Shop")
		}
		return ic(ctx, in, &grpc.UnaryServerInfo{Server: srv, FullMethod: method}, handler)
	}}
}

func describeService(name string) *grpc.ServiceDesc {
	stream := func(srv any, s grpc.ServerStream) error { return srv.(*service).stream(s) }
	return &grpc.ServiceDesc{
		ServiceName: name, HandlerType: (*any)(nil),
		Methods: []grpc.MethodDesc{unaryMethod("Get"), unaryMethod("Put")},
		Streams: []grpc.StreamDesc{
			{StreamName: "Watch", Handler: stream, ServerStreams: true},
			{StreamName: "Chat", Handler: stream, ServerStreams: true, ClientStreams: true},
		},
	}
}

// network is a network between a client and a server.
type network struct {
	listener net.Listener
	target   string
	dial     []grpc.DialOption
}

// overTCP returns a link over loopback.
func overTCP(t testing.TB) network {
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	return network{listener: l, target: l.Addr().String()}
}

// inMemory returns a link in memory, for bubbles.
func inMemory() network {
	l := bufconn.Listen(1 << 16)
	dialer := func(ctx context.Context, _ string) (net.Conn, error) { return l.DialContext(ctx) }
	return network{listener: l, target: "passthrough:///bufconn", dial: []grpc.DialOption{grpc.WithContextDialer(dialer)}}
}

// serve runs a server until the test ends, and returns a connection to it. server and client may be
// nil.
func serve(t testing.TB, over network, s *service, server *weirgrpc.Server, client *weirgrpc.Client) *grpc.ClientConn {
	var options []grpc.ServerOption
	if server != nil {
		options = []grpc.ServerOption{
			grpc.ChainUnaryInterceptor(recoverUnary, server.Unary), grpc.ChainStreamInterceptor(recoverStream, server.Stream),
		}
	}
	running := grpc.NewServer(options...)
	running.RegisterService(describeService("test.Shop"), s)
	running.RegisterService(describeService("test.Bank"), s)
	var serving sync.WaitGroup
	serving.Go(func() { _ = running.Serve(over.listener) })
	t.Cleanup(func() {
		running.Stop()
		serving.Wait()
	})
	return connect(t, over, client)
}

func connect(t testing.TB, over network, client *weirgrpc.Client) *grpc.ClientConn {
	options := append(slices.Clip(over.dial), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if client != nil {
		options = append(options, grpc.WithChainUnaryInterceptor(client.Unary), grpc.WithChainStreamInterceptor(client.Stream))
	}
	cc, err := grpc.NewClient(over.target, options...)
	require.NoError(t, err)
	t.Cleanup(func() { _ = cc.Close() })
	return cc
}

// errPanicked is the error of a handler that panicked.
var errPanicked = status.Error(codes.Internal, "panic")

func recoverUnary(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (reply any, err error) {
	defer func() {
		if recover() != nil {
			err = errPanicked
		}
	}()
	return handler(ctx, req)
}

func recoverStream(srv any, s grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) (err error) {
	defer func() {
		if recover() != nil {
			err = errPanicked
		}
	}()
	return handler(srv, s)
}

// call calls a unary method.
func call(ctx context.Context, cc *grpc.ClientConn, method, in string, options ...grpc.CallOption) (string, error) {
	out := new(wrapperspb.StringValue)
	err := cc.Invoke(ctx, method, wrapperspb.String(in), out, options...)
	return out.Value, err
}

// openStream begins a stream.
func openStream(ctx context.Context, cc *grpc.ClientConn, method string, options ...grpc.CallOption) (grpc.ClientStream, error) {
	return cc.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, method, options...)
}

func receive(s grpc.ClientStream) error { return s.RecvMsg(new(wrapperspb.StringValue)) }

func send(s grpc.ServerStream, words ...string) error {
	for _, w := range words {
		if err := s.SendMsg(wrapperspb.String(w)); err != nil {
			return err
		}
	}
	return nil
}

// errorWithRetryInfo returns an error with a RetryInfo.
func errorWithRetryInfo(c codes.Code, wait *durationpb.Duration) error {
	s, err := status.New(c, "busy").WithDetails(&errdetails.RetryInfo{RetryDelay: wait})
	if err != nil {
		panic(err)
	}
	return s.Err()
}

// firstDetail returns the first detail of that type, and whether err has one.
func firstDetail[M proto.Message](err error) (m M, ok bool) {
	for _, d := range status.Convert(err).Details() {
		if m, ok = d.(M); ok {
			return m, true
		}
	}
	return m, false
}

// retryAfter returns the wait that the status of an error asks for.
func retryAfter(err error) time.Duration {
	for _, detail := range status.Convert(err).Details() {
		if info, ok := detail.(*errdetails.RetryInfo); ok {
			return info.GetRetryDelay().AsDuration()
		}
	}
	return 0
}

type gateFunc = func(context.Context, weirgrpc.Call) *weir.Gate

func gatePerMethod(name string, c weir.Config) gateFunc {
	return weirgrpc.Per(weir.NewGroup[string](name, weir.GroupConfig{Gate: c}), weirgrpc.ByMethod)
}

func gatePerService(name string, c weir.Config) gateFunc {
	return weirgrpc.Per(weir.NewGroup[string](name, weir.GroupConfig{Gate: c}), weirgrpc.ByService)
}

func gatePerTarget(name string, c weir.Config) gateFunc {
	return weirgrpc.Per(weir.NewGroup[string](name, weir.GroupConfig{Gate: c}), func(_ context.Context, call weirgrpc.Call) string { return call.Target })
}
