package redistest_test

import (
	"fmt"
	"net"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/fleet/internal/redistest"
)

var shared redistest.Package

func TestMain(m *testing.M) { os.Exit(shared.Run(m)) }

var cluster = sync.OnceValue(func() *redistest.Cluster { return redistest.StartCluster(&shared) })

func TestAServerForgetsWhatItDoesNotKeepOnDisk(t *testing.T) {
	for keeps, options := range map[bool]redistest.Options{false: {}, true: {AppendOnly: true}} {
		s := options.Start(t)
		o := s.Options()
		o.DialerRetries = 1
		c := redis.NewClient(o)
		require.NoError(t, c.Set(t.Context(), "key", "value", 0).Err())
		s.Kill()
		require.Error(t, c.Get(t.Context(), "key").Err())
		s.Restart()
		require.Equal(t, keeps, c.Exists(t.Context(), "key").Val() == 1)
		require.NoError(t, c.Close())
	}
}

func TestAPausedServerAnswersLater(t *testing.T) {
	s := redistest.Start(t)
	o := s.Options()
	o.MaxRetries, o.ReadTimeout = -1, 50*time.Millisecond
	c := redis.NewClient(o)
	defer c.Close()
	require.NoError(t, c.Ping(t.Context()).Err())
	s.Pause()
	require.Error(t, c.Ping(t.Context()).Err())
	s.Continue()
	require.NoError(t, c.Ping(t.Context()).Err())
}

func TestPasswordAndTLS(t *testing.T) {
	s := redistest.Options{Password: "geheim", TLS: true}.Start(t)
	require.NoError(t, s.Client().Ping(t.Context()).Err())
	for _, spoil := range []func(*redis.Options){
		func(o *redis.Options) { o.Password = "" },
		func(o *redis.Options) { o.TLSConfig.RootCAs = nil },
		func(o *redis.Options) { o.TLSConfig = nil },
	} {
		o := s.Options()
		o.MaxRetries, o.DialerRetries, o.ReadTimeout = -1, 1, 200*time.Millisecond
		spoil(o)
		c := redis.NewClient(o)
		require.Error(t, c.Ping(t.Context()).Err())
		require.NoError(t, c.Close())
	}
}

func TestCallsCountsCommands(t *testing.T) {
	s := redistest.Start(t)
	c := s.Client()
	for range 3 {
		require.ErrorIs(t, c.Get(t.Context(), "none").Err(), redis.Nil)
	}
	require.Equal(t, 3, s.Calls()["get"])
}

func TestAReplicaFollowsUntilItIsPromoted(t *testing.T) {
	master := redistest.Start(t)
	replica := master.StartReplica()
	require.NoError(t, master.Client().Set(t.Context(), "key", "value", 0).Err())
	require.Equal(t, int64(1), master.Client().Wait(t.Context(), 1, time.Second).Val())
	require.Equal(t, "value", replica.Client().Get(t.Context(), "key").Val())
	require.ErrorContains(t, replica.Client().Set(t.Context(), "key", "x", 0).Err(), "READONLY")
	master.Kill()
	replica.Promote()
	require.NoError(t, replica.Client().Set(t.Context(), "key", "x", 0).Err())
}

func TestAClusterHoldsKeysOnAllNodes(t *testing.T) {
	c := cluster().Client()
	for i := range 50 {
		require.NoError(t, c.Set(t.Context(), fmt.Sprint("key", i), i, 0).Err())
	}
	for _, node := range cluster().Nodes {
		require.NotEqual(t, "0", node.Do("DBSIZE"))
	}
}

// clientThrough returns a client with one open connection to the server behind the
// proxy. It tries each command once.
func clientThrough(t *testing.T, p *redistest.Proxy) *redis.Client {
	c := redis.NewClient(&redis.Options{
		Addr: p.Addr(), MaxRetries: -1, DialerRetries: 1, PoolSize: 1, DialTimeout: 5 * time.Second,
		ReadTimeout: time.Second, ContextTimeoutEnabled: true, Protocol: 2, DisableIdentity: true,
	})
	t.Cleanup(func() { _ = c.Close() })
	require.NoError(t, c.Ping(t.Context()).Err())
	return c
}

// increment adds 1 to the key n. count reads that key.
func increment(t *testing.T, c *redis.Client) error { return c.Incr(t.Context(), "n").Err() }

func countOf(s *redistest.Server) string { return s.Do("GET", "n") }

func TestTheProxyLosesRequestsAndReplies(t *testing.T) {
	s := redistest.Start(t)
	p := redistest.NewProxy(t, s.Addr())
	c := clientThrough(t, p)
	require.NoError(t, increment(t, c))
	require.Equal(t, "1", countOf(s))

	p.Swallow(true, false)
	require.Error(t, increment(t, c))
	require.Equal(t, "1", countOf(s), "the request did not arrive")
	p.Swallow(false, false)

	c = clientThrough(t, p)
	p.Swallow(false, true)
	require.Error(t, increment(t, c))
	require.Equal(t, "2", countOf(s), "the reply did not arrive")
	p.Swallow(false, false)

	c = clientThrough(t, p)
	p.LoseReplies(1)
	require.Error(t, increment(t, c))
	require.Equal(t, "3", countOf(s))
	require.NoError(t, increment(t, c))
}

func TestTheProxyDelaysRefusesAndCuts(t *testing.T) {
	p := redistest.NewProxy(t, redistest.Start(t).Addr())
	c := clientThrough(t, p)
	p.Delay(20 * time.Millisecond)
	began := time.Now()
	require.NoError(t, increment(t, c))
	require.Greater(t, time.Since(began), 40*time.Millisecond)
	p.Delay(700 * time.Millisecond) // each way, which is more than the client waits
	require.Error(t, increment(t, c))
	p.Delay(0)

	p.Refuse()
	require.ErrorContains(t, increment(t, c), "refused")
	p.Accept()
	c = clientThrough(t, p)
	require.NoError(t, increment(t, c))

	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", p.Addr())
	require.NoError(t, err)
	defer conn.Close()
	_, err = conn.Write([]byte("PING\r\n"))
	require.NoError(t, err)
	_, err = conn.Read(make([]byte, 100))
	require.NoError(t, err)
	p.Cut()
	_, err = conn.Read(make([]byte, 100))
	require.ErrorIs(t, err, syscall.ECONNRESET)
}

func TestTheProxyLeadsToAnotherServer(t *testing.T) {
	p := redistest.NewProxy(t, redistest.Start(t).Addr())
	other := redistest.Start(t)
	p.Lead(other.Addr())
	require.NoError(t, increment(t, clientThrough(t, p)))
	require.Equal(t, "1", countOf(other))
}
