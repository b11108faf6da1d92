package fleet_test

import (
	"context"
	"net"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/fleet"
	"github.com/weir-go/weir/fleet/internal/redistest"
)

// A client keeps its hooks forever, and each hook adds a stack frame to a dial.
func TestLinksOfAClientShareAHook(t *testing.T) {
	var depth atomic.Int64
	dial := func(ctx context.Context, network, addr string) (net.Conn, error) {
		depth.Store(int64(runtime.Callers(0, make([]uintptr, 1000))))
		return new(net.Dialer).DialContext(ctx, network, addr)
	}
	s := redistest.Start(t)
	plain := redis.NewClient(&redis.Options{Addr: s.Addr(), ContextTimeoutEnabled: true, Dialer: dial})
	ring := redis.NewRing(&redis.RingOptions{
		Addrs: map[string]string{"a": s.Addr()}, ContextTimeoutEnabled: true, Dialer: dial, HeartbeatFrequency: time.Hour,
	})
	for name, client := range map[string]redis.UniversalClient{"stand-alone": plain, "Ring": ring} {
		t.Cleanup(func() { _ = client.Close() })
		dialed := func() int64 {
			connectTo(t, client, fleet.LinkConfig{Timeout: longTimeout})
			depth.Store(0)
			s.Do("CLIENT", "KILL", "TYPE", "normal")
			require.Eventually(t, func() bool {
				_ = client.Ping(t.Context()).Err()
				return depth.Load() > 0
			}, longTimeout, time.Millisecond)
			return depth.Load()
		}
		first := dialed()
		for range 20 {
			connectTo(t, client, fleet.LinkConfig{Timeout: longTimeout})
		}
		require.Equal(t, first, dialed(), name)
	}
}
