package weirgrpc_test

import (
	"context"
	"fmt"
	"net"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/weirgrpc"
)

// A server that allows two calls per minute and client, and a client that stops calling a method
// while it fails.
func Example() {
	clients := limiter.NewGroup(limiter.GroupConfig[string]{Rate: limiter.PerMinute(2), Burst: 2, Name: "clients"})
	shop := weirgrpc.NewServer(weirgrpc.ServerConfig{}, weirgrpc.LimitBy(clients, weirgrpc.ByPeer))
	server := grpc.NewServer(grpc.ChainUnaryInterceptor(shop.Unary), grpc.ChainStreamInterceptor(shop.Stream))
	grpc_health_v1.RegisterHealthServer(server, health.NewServer())
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	go func() { _ = server.Serve(listener) }()
	defer server.Stop()

	methods := weir.NewGroup[string]("stock", weir.GroupConfig{})
	stock := weirgrpc.NewClient(weirgrpc.Per(methods, weirgrpc.ByMethod), weirgrpc.ClientConfig{})
	conn, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithChainUnaryInterceptor(stock.Unary), grpc.WithChainStreamInterceptor(stock.Stream))
	if err != nil {
		panic(err)
	}
	defer conn.Close()
	client := grpc_health_v1.NewHealthClient(conn)
	for range 3 {
		_, err := client.Check(context.Background(), &grpc_health_v1.HealthCheckRequest{})
		fmt.Println(status.Code(err))
	}
	// Output:
	// OK
	// OK
	// ResourceExhausted
}
