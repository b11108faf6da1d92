package fleet_test

import (
	"context"
	"net"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/fleet"
	"github.com/weir-go/weir/fleet/internal/redistest"
	"github.com/weir-go/weir/internal/testenv"
)

const decisionTimeout = 100 * ms

// delays are causes of long waits. Each changes the options of a client, and returns what to do
// with the client before the test.
var delays = map[string]func(*testing.T, *redistest.Server, *redis.Options) func(*redis.Client){
	"a pool that others have taken": func(t *testing.T, _ *redistest.Server, o *redis.Options) func(*redis.Client) {
		o.PoolSize = 1
		return func(c *redis.Client) {
			held := c.Conn()
			t.Cleanup(func() { _ = held.Close() })
			require.NoError(t, held.Ping(t.Context()).Err())
		}
	},
	"a dial that hangs": func(t *testing.T, _ *redistest.Server, o *redis.Options) func(*redis.Client) {
		o.Dialer = func(context.Context, string, string) (net.Conn, error) {
			<-t.Context().Done()
			return nil, net.ErrClosed
		}
		return func(*redis.Client) {}
	},
	"a server that hangs": func(t *testing.T, s *redistest.Server, _ *redis.Options) func(*redis.Client) {
		return func(*redis.Client) {
			s.Pause()
			t.Cleanup(s.Continue)
		}
	},
	"a server that is slow": func(t *testing.T, s *redistest.Server, o *redis.Options) func(*redis.Client) {
		proxy := redistest.NewProxy(t, s.Addr())
		o.Addr = proxy.Addr()
		// each round trip takes two thirds of the Timeout, and more than one is needed
		return func(*redis.Client) { proxy.Delay(decisionTimeout / 3) }
	},
}

// Whatever a decision waits for, it lasts no longer than the Timeout. That includes the first,
// which asks the server about itself.
func TestNoDecisionLastsLongerThanTheTimeout(t *testing.T) {
	t.Parallel()
	for name, cause := range delays {
		t.Run(name, func(t *testing.T) {
			s := redistest.Start(t)
			o := s.Options()
			o.ContextTimeoutEnabled = true
			spoil := cause(t, s, o)
			c := redis.NewClient(o)
			t.Cleanup(func() { _ = c.Close() })
			spoil(c)
			began := testenv.Running()
			l := connectTo(t, c, fleet.LinkConfig{Timeout: decisionTimeout, Breaker: breaker.Config{ConsecutiveFailures: 100, MinCalls: 100}})
			require.Less(t, testenv.Running()-began, decisionTimeout+timeoutSlack, "Connect")
			b := newBucket(l, errorOnOutage)
			for range 3 {
				began = testenv.Running()
				_, err := b.Take(t.Context(), "user", 1)
				require.ErrorIs(t, err, fleet.ErrUnavailable)
				require.Less(t, testenv.Running()-began, decisionTimeout+timeoutSlack)
			}
			require.Error(t, l.Err())
		})
	}
}
