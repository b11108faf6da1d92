package weirgrpc_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/stat"
	"github.com/weir-go/weir/weirgrpc"
)

// metrics returns the values of a source by outcome, or by the last word of the instrument's name.
func metrics(s stat.Source) map[string]float64 {
	all := map[string]float64{}
	for s, v := range s.Observe {
		name := s.Instrument.Name[strings.LastIndexByte(s.Instrument.Name, '.')+1:]
		if len(s.Values) > 1 {
			name = s.Values[1]
		}
		all[name] = v
	}
	return all
}

func TestByService(t *testing.T) {
	for method, want := range map[string]string{
		"/shop.Stock/Get": "shop.Stock", "/a/b/c": "a/b", "shop.Stock/Get": "shop.Stock", "/alone": "alone", "": "", "/": "", "//": "",
	} {
		require.Equal(t, want, weirgrpc.ByService(t.Context(), weirgrpc.Call{Method: method}), method)
	}
}

func TestByPeer(t *testing.T) {
	for _, step := range []struct {
		addr net.Addr
		want string
	}{
		{&net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 5}, "192.0.2.1"},
		{&net.TCPAddr{IP: net.ParseIP("::ffff:192.0.2.1"), Port: 6}, "192.0.2.1"},
		{&net.TCPAddr{IP: net.ParseIP("2001:db8:1:2:3:4:5:6"), Port: 7}, "2001:db8:1:2::/64"},
		{&net.TCPAddr{IP: net.ParseIP("fe80::1"), Zone: "eth0"}, "fe80::/64"},
		{&net.TCPAddr{}, "invalid IP"},
		{&net.UnixAddr{Name: "@shop", Net: "unix"}, "@shop"},
		{nil, ""},
	} {
		ctx := peer.NewContext(t.Context(), &peer.Peer{Addr: step.addr})
		require.Equal(t, step.want, weirgrpc.ByPeer(ctx, weirgrpc.Call{}), "%v", step.addr)
	}
	require.Empty(t, weirgrpc.ByPeer(t.Context(), weirgrpc.Call{}))
}

func newClientBuckets(most int) *limiter.Group[string] {
	c := limiter.GroupConfig[string]{Rate: limiter.Per(2, time.Hour), Burst: 2, MaxKeys: most, Name: "clients"}
	return limiter.NewGroup(c)
}

func TestEachClientHasItsOwnLimit(t *testing.T) {
	server := newServer(weirgrpc.LimitBy(newClientBuckets(0), weirgrpc.ByMetadata("x-api-key")))
	cc := serve(t, overTCP(t), &service{}, server, nil)
	long := strings.Repeat("k", 1<<20)
	for _, keys := range [][]string{{}, {"a"}, {"A"}, {"b", "a"}, {long + "1"}, {long + "2"}} {
		ctx := t.Context()
		for _, k := range keys {
			ctx = metadata.AppendToOutgoingContext(ctx, "X-API-Key", k)
		}
		for n := range 3 {
			_, err := call(ctx, cc, get, "")
			require.Equal(t, n == 2, status.Code(err) == codes.ResourceExhausted, "call %d of %.10v: %v", n, keys, err)
		}
	}
}

func TestFloodOfClientsIsBoundedAndEvictsNoKeyInUse(t *testing.T) {
	keys := newClientBuckets(500)
	server := newServer(weirgrpc.LimitBy(keys, weirgrpc.ByMetadata("x-api-key")))
	enter := func(key string) error {
		ctx := metadata.NewIncomingContext(t.Context(), metadata.Pairs("x-api-key", key))
		_, err := server.Unary(ctx, nil, &grpc.UnaryServerInfo{FullMethod: get}, func(context.Context, any) (any, error) { return nil, nil })
		return err
	}
	for range 2 {
		require.NoError(t, enter("me"))
	}
	const size = 64 << 10
	kept := heapGrowth(func() {
		for i := range 2000 {
			_ = enter(fmt.Sprint(i, strings.Repeat("k", size)))
		}
	})
	require.Error(t, enter("me"), "a key with a used-up limit is not evicted")
	require.LessOrEqual(t, keys.Len(), 500)
	require.Less(t, kept, int64(100*size), "500 keys of this size were sent")
}

// heapGrowth returns by how many bytes the heap grows during f.
func heapGrowth(f func()) int64 {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	f()
	runtime.GC()
	runtime.ReadMemStats(&after)
	return int64(after.HeapAlloc) - int64(before.HeapAlloc)
}

// With a grpc.UnknownServiceHandler clients choose the methods.
func TestFloodOfLongMethodsIsBounded(t *testing.T) {
	methods := weir.NewGroup[string]("shop", weir.GroupConfig{})
	server := newServer(weirgrpc.Guard(weirgrpc.Per(methods, weirgrpc.ByMethod)))
	longest := 0
	for range 200 {
		method := fmt.Sprint("/", rand.Uint64(), strings.Repeat("x", 10_000), "/Get")
		_, err := server.Unary(t.Context(), nil, &grpc.UnaryServerInfo{FullMethod: method}, func(context.Context, any) (any, error) { return nil, nil })
		require.NoError(t, err)
	}
	for s := range methods.Observe {
		for _, v := range s.Values {
			longest = max(longest, len(v))
		}
	}
	require.Positive(t, longest)
	require.LessOrEqual(t, longest, 128)
}

func TestLongMethodsAreNotKept(t *testing.T) {
	const size = 64 << 10
	for name, rule := range map[string]weirgrpc.Rule{
		"per method": weirgrpc.Guard(gatePerMethod("shop", weir.Config{})), "per service": weirgrpc.Guard(gatePerService("shop", weir.Config{})),
		"ByMethod": weirgrpc.LimitBy(newClientBuckets(0), weirgrpc.ByMethod),
	} {
		server := newServer(rule)
		kept := heapGrowth(func() {
			for i := range 500 {
				method := fmt.Sprint("/", i, "/", strings.Repeat("x", size))
				_, err := server.Unary(t.Context(), nil, &grpc.UnaryServerInfo{FullMethod: method}, func(context.Context, any) (any, error) { return nil, nil })
				require.NoError(t, err)
			}
		})
		require.Less(t, kept, int64(100*size), name)
		runtime.KeepAlive(server)
	}
}

func TestKeyOfMoreThan128BytesIsHashed(t *testing.T) {
	for size, kept := range map[int]bool{1: true, 128: true, 129: false, 10_000: false} {
		value := strings.Repeat("k", size)
		want := sha256.Sum256([]byte(value))
		ctx := metadata.NewIncomingContext(t.Context(), metadata.Pairs("x-api-key", value))
		for _, got := range []string{weirgrpc.ByMetadata("x-api-key")(ctx, weirgrpc.Call{}), weirgrpc.ByMethod(ctx, weirgrpc.Call{Method: value})} {
			require.Equal(t, kept, got == value, "%d bytes", size)
			require.Equal(t, !kept, got == string(want[:]), "%d bytes", size)
		}
	}
}

// A call that is refused because the group has no room for its key has an error that says so.
func TestALimitWithoutRoomForAKeySaysSo(t *testing.T) {
	clients := limiter.NewGroup(limiter.GroupConfig[string]{Rate: limiter.Per(1, time.Hour), Burst: 1, MaxKeys: 1, Name: "clients"})
	var refused []string
	server := weirgrpc.NewServer(weirgrpc.ServerConfig{OnRefusal: func(_ context.Context, e *weirgrpc.RefusedError) {
		refused = append(refused, e.Error())
	}}, weirgrpc.LimitBy(clients, func(_ context.Context, c weirgrpc.Call) string { return c.Method }))
	for _, method := range []string{"a", "a", "b"} {
		_, _ = server.Unary(t.Context(), nil, &grpc.UnaryServerInfo{FullMethod: method}, func(context.Context, any) (any, error) { return "", nil })
	}
	require.Len(t, refused, 2)
	require.Contains(t, refused[0], "weirgrpc: a refused: limiter clients: no tokens left (limit 1), retry in ")
	require.Contains(t, refused[1], "weirgrpc: b refused: limiter clients: no room for the key: MaxKeys is 1 (limit 1), retry in ")
	require.Equal(t, 1.0, metrics(clients)["no_room"])
}
