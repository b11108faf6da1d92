package weirgrpc_test

import (
	"context"
	"net"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/peer"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/inflight"
	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/weirgrpc"
)

// The cost of the interceptors for a call that takes no time.
func BenchmarkClientUnary(b *testing.B) {
	shut := weir.New("g", weir.Config{})
	shut.Breaker().Force(breaker.ForcedOpen, "")
	cc := connect(b, network{target: "passthrough:///nowhere"}, nil)
	invoke := func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error { return nil }
	for name, gates := range map[string]gateFunc{
		"one":        weirgrpc.ForAll(weir.New("g", weir.Config{})),
		"limited":    weirgrpc.ForAll(weir.New("g", weir.Config{Rate: limiter.PerSecond(1e9)})),
		"per method": gatePerMethod("g", weir.Config{}),
		"refused":    weirgrpc.ForAll(shut),
	} {
		b.Run(name, func(b *testing.B) {
			client, ctx := newClient(gates), context.Background()
			b.ReportAllocs()
			for b.Loop() {
				_ = client.Unary(ctx, get, nil, nil, cc, invoke)
			}
		})
	}
}

func BenchmarkServerUnary(b *testing.B) {
	keys := limiter.NewGroup(limiter.GroupConfig[string]{Rate: limiter.PerSecond(1e9), Name: "clients"})
	handler := func(context.Context, any) (any, error) { return nil, nil }
	info := &grpc.UnaryServerInfo{FullMethod: get}
	ctx := peer.NewContext(context.Background(), &peer.Peer{Addr: &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 5}})
	for name, rules := range map[string][]weirgrpc.Rule{
		"none":  nil,
		"shed":  {weirgrpc.Shed(inflight.New(inflight.Config{Limit: 10, Name: "places"}), nil)},
		"peer":  {weirgrpc.LimitBy(keys, weirgrpc.ByPeer)},
		"guard": {weirgrpc.Guard(gatePerMethod("g", weir.Config{}))},
	} {
		b.Run(name, func(b *testing.B) {
			server := newServer(rules...)
			b.ReportAllocs()
			for b.Loop() {
				_, _ = server.Unary(ctx, nil, info, handler)
			}
		})
	}
}

// A call over loopback, with the interceptors on both sides and without them.
func BenchmarkCallParallel(b *testing.B) {
	guarded := gatePerMethod("far", weir.Config{})
	for name, step := range map[string]struct {
		server *weirgrpc.Server
		client *weirgrpc.Client
	}{
		"without": {},
		"with":    {newServer(weirgrpc.Guard(guarded)), newClient(gatePerMethod("near", weir.Config{}))},
	} {
		b.Run(name, func(b *testing.B) {
			cc := serve(b, overTCP(b), &service{}, step.server, step.client)
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					_, err := call(context.Background(), cc, get, "x")
					require.NoError(b, err)
				}
			})
		})
	}
}
