package weirgrpc_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/inflight"
	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/weirgrpc"
)

// startShop runs the health service of gRPC behind the rules.
func startShop(shop *weirgrpc.Server) (target string, stop func()) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	server := grpc.NewServer(grpc.ChainUnaryInterceptor(shop.Unary), grpc.ChainStreamInterceptor(shop.Stream))
	grpc_health_v1.RegisterHealthServer(server, health.NewServer())
	go func() { _ = server.Serve(listener) }()
	return listener.Addr().String(), server.Stop
}

func dial(target string, client *weirgrpc.Client) *grpc.ClientConn {
	conn, err := grpc.NewClient(target, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithChainUnaryInterceptor(client.Unary), grpc.WithChainStreamInterceptor(client.Stream))
	if err != nil {
		panic(err)
	}
	return conn
}

// No server listens at this target, so the breaker opens after three calls.
func ExampleClient() {
	methods := weir.NewGroup[string]("stock", weir.GroupConfig{Gate: weir.Config{Breaker: breaker.Config{MinCalls: 3}}})
	stock := weirgrpc.NewClient(weirgrpc.Per(methods, weirgrpc.ByMethod), weirgrpc.ClientConfig{})
	conn := dial("127.0.0.1:1", stock)
	defer conn.Close()

	client := grpc_health_v1.NewHealthClient(conn)
	for range 4 {
		_, err := client.Check(context.Background(), &grpc_health_v1.HealthCheckRequest{})
		fmt.Println(status.Code(err), errors.Is(err, breaker.ErrOpen), weir.RetryAfter(err) > 0)
	}
	// Output:
	// Unavailable false false
	// Unavailable false false
	// Unavailable false false
	// Unavailable true true
}

// For this client, ResourceExhausted is not a failure, and waits of up to ten seconds are obeyed.
func ExampleClientConfig() {
	config := weirgrpc.ClientConfig{
		Classify: func(err error) breaker.Outcome {
			if status.Code(err) == codes.ResourceExhausted {
				return breaker.Ignored
			}
			return weirgrpc.DefaultClassify(err)
		},
		MaxRetryAfter: 10 * time.Second,
		OnRefusal:     weirgrpc.LogRefusedCalls(slog.Default()),
	}
	fmt.Println(config.Classify(status.Error(codes.ResourceExhausted, "busy")), config.Classify(status.Error(codes.Internal, "bug")))
	// Output: ignored failure
}

func ExampleServer() {
	inFlight := inflight.New(inflight.Config{Limit: 100, Name: "in flight"})
	clients := limiter.NewGroup(limiter.GroupConfig[string]{Rate: limiter.Per(2, time.Hour), Burst: 2, Name: "clients"})
	shop := weirgrpc.NewServer(weirgrpc.ServerConfig{},
		weirgrpc.Shed(inFlight, nil),
		weirgrpc.LimitBy(clients, weirgrpc.ByPeer),
		weirgrpc.Guard(gatePerMethod("shop", weir.Config{})))
	target, stop := startShop(shop)
	defer stop()

	conn := dial(target, weirgrpc.NewClient(gatePerTarget("shop", weir.Config{}), weirgrpc.ClientConfig{}))
	defer conn.Close()
	client := grpc_health_v1.NewHealthClient(conn)
	for range 3 {
		_, err := client.Check(context.Background(), &grpc_health_v1.HealthCheckRequest{})
		fmt.Println(status.Code(err), retryAfter(err).Round(10*time.Minute))
	}
	// Output:
	// OK 0s
	// OK 0s
	// ResourceExhausted 30m0s
}

// Clients choose the deadlines, so this server ignores calls that exceed them.
func ExampleServerConfig() {
	gate := weir.New("shop", weir.Config{})
	shop := weirgrpc.NewServer(weirgrpc.ServerConfig{
		Classify: func(err error) breaker.Outcome {
			if status.Code(err) == codes.DeadlineExceeded {
				return breaker.Ignored
			}
			return weirgrpc.DefaultClassify(err)
		},
	}, weirgrpc.Guard(weirgrpc.ForAll(gate)))

	late := func(context.Context, any) (any, error) { return nil, status.Error(codes.DeadlineExceeded, "") }
	_, _ = shop.Unary(context.Background(), nil, &grpc.UnaryServerInfo{FullMethod: "/shop.Stock/Get"}, late)
	fmt.Println(gate.Totals().Failures, gate.Totals().Ignored)
	// Output: 0 1
}

// Each tenant has its own gate. Health checks have no gate.
func ExamplePer() {
	tenants := weir.NewGroup[string]("tenants", weir.GroupConfig{MaxKeys: 1000})
	perTenant := weirgrpc.Per(tenants, weirgrpc.ByMetadata("tenant"))
	gate := func(ctx context.Context, call weirgrpc.Call) *weir.Gate {
		if weirgrpc.ByService(ctx, call) == "grpc.health.v1.Health" {
			return nil
		}
		return perTenant(ctx, call)
	}
	shop := weirgrpc.NewServer(weirgrpc.ServerConfig{}, weirgrpc.Guard(gate))

	serve := func(context.Context, any) (any, error) { return nil, nil }
	for _, method := range []string{"/grpc.health.v1.Health/Check", "/shop.Stock/Get"} {
		ctx := metadata.NewIncomingContext(context.Background(), metadata.Pairs("tenant", "acme"))
		_, _ = shop.Unary(ctx, nil, &grpc.UnaryServerInfo{FullMethod: method}, serve)
		fmt.Println(tenants.Len(), "tenants")
	}
	fmt.Println(tenants.Get("acme").Totals().Successes)
	// Output:
	// 0 tenants
	// 1 tenants
	// 1
}

func ExampleCall() {
	call := weirgrpc.Call{Method: "/shop.Stock/Get", Target: "dns:///stock:443"}
	fmt.Println(weirgrpc.ByService(context.Background(), call))
	// Output: shop.Stock
}

// One limit per client and method.
func ExampleRule() {
	type who struct{ client, method string }
	byBoth := func(ctx context.Context, call weirgrpc.Call) who {
		return who{weirgrpc.ByPeer(ctx, call), call.Method}
	}
	group := limiter.NewGroup(limiter.GroupConfig[who]{Rate: limiter.PerMinute(1), Name: "clients"})
	rule := weirgrpc.LimitBy(group, byBoth)

	shop := weirgrpc.NewServer(weirgrpc.ServerConfig{}, rule)
	serve := func(context.Context, any) (any, error) { return nil, nil }
	for _, method := range []string{"/shop.Stock/Get", "/shop.Stock/Get", "/shop.Stock/Put"} {
		_, err := shop.Unary(context.Background(), nil, &grpc.UnaryServerInfo{FullMethod: method}, serve)
		fmt.Println(method, status.Code(err))
	}
	// Output:
	// /shop.Stock/Get OK
	// /shop.Stock/Get ResourceExhausted
	// /shop.Stock/Put OK
}

func ExampleShed() {
	places := inflight.New(inflight.Config{Limit: 1, Name: "in flight"})
	target, stop := startShop(weirgrpc.NewServer(weirgrpc.ServerConfig{}, weirgrpc.Shed(places, nil)))
	defer stop()
	conn := dial(target, weirgrpc.NewClient(gatePerTarget("shop", weir.Config{}), weirgrpc.ClientConfig{}))
	defer conn.Close()

	client, request := grpc_health_v1.NewHealthClient(conn), &grpc_health_v1.HealthCheckRequest{}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	watch, _ := client.Watch(ctx, request)
	first, _ := watch.Recv() // the stream continues and holds its slot
	_, err := client.Check(ctx, request)
	fmt.Println(first.Status, status.Code(err))
	// Output: SERVING ResourceExhausted
}

func ExampleRefusedError() {
	gate := weir.New("stock", weir.Config{})
	gate.Breaker().Force(breaker.ForcedOpen, "")
	conn := dial("127.0.0.1:1", weirgrpc.NewClient(weirgrpc.ForAll(gate), weirgrpc.ClientConfig{}))
	defer conn.Close()

	_, err := grpc_health_v1.NewHealthClient(conn).Check(context.Background(), &grpc_health_v1.HealthCheckRequest{})
	if refused, ok := errors.AsType[*weirgrpc.RefusedError](err); ok {
		fmt.Println(errors.Is(err, breaker.ErrOpen), refused.Method)
		fmt.Println(refused.GRPCStatus())
	}
	// Output:
	// true /grpc.health.v1.Health/Check
	// rpc error: code = Unavailable desc = refused by breaker "stock", retry in 1s
}

func ExampleLogRefusedCalls() {
	plain := slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey || a.Key == "error.message" {
			return slog.Attr{}
		}
		return a
	}})
	gate := weir.New("stock", weir.Config{})
	gate.Breaker().Force(breaker.ForcedOpen, "")
	conn := dial("127.0.0.1:1", weirgrpc.NewClient(weirgrpc.ForAll(gate), weirgrpc.ClientConfig{
		OnRefusal: weirgrpc.LogRefusedCalls(slog.New(plain)),
	}))
	defer conn.Close()
	_, _ = grpc_health_v1.NewHealthClient(conn).Check(context.Background(), &grpc_health_v1.HealthCheckRequest{})
	// Output:
	// level=INFO msg="call refused" event.name=weir.refusal weir.refusal.reason=open weir.breaker.name=stock weir.breaker.state=forced_open weir.retry_after=1 rpc.method=/grpc.health.v1.Health/Check weir.log.left_out=0
}
