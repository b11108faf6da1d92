// Package redis_test tries weirredis with go-redis and a real server.
package redis_test

import (
	"net"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/internal/testenv"
	"github.com/weir-go/weir/weirredis"
)

// server is a redis-server on a port of its own, which can be killed and started again.
type server struct {
	program, addr string
	cmd           *exec.Cmd
}

func newServer(t *testing.T) *server {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s := &server{program: testenv.Program(t, "redis-server"), addr: listener.Addr().String()}
	require.NoError(t, listener.Close())
	s.start(t)
	t.Cleanup(s.kill)
	return s
}

func (s *server) start(t *testing.T) {
	t.Helper()
	_, port, err := net.SplitHostPort(s.addr)
	require.NoError(t, err)
	s.cmd = exec.CommandContext(t.Context(), s.program, "--port", port, "--bind", "127.0.0.1", "--save", "", "--dir", t.TempDir())
	require.NoError(t, s.cmd.Start())
	require.Eventually(t, func() bool {
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", s.addr)
		return err == nil && conn.Close() == nil
	}, time.Minute, 10*time.Millisecond, "the server does not start")
}

func (s *server) kill() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
}

// newClient returns a client with a gate.
func newClient(t *testing.T, s *server, options redis.Options) (*redis.Client, *weir.Gate) {
	t.Helper()
	gate := weir.New("cache", weir.Config{Breaker: breaker.Config{
		ConsecutiveFailures: 5, Cooldown: time.Second, Recovery: breaker.Off, Probes: 1,
	}})
	options.Addr, options.Limiter = s.addr, weirredis.New(gate)
	client := redis.NewClient(&options)
	t.Cleanup(func() { _ = client.Close() })
	return client, gate
}

// counter returns a function that returns how many successes, failures and ignored calls there were
// since the last time.
func counter(g *weir.Gate) func() [3]int64 {
	var before [3]int64
	count := func() [3]int64 {
		all := g.Breaker().Totals()
		now := [3]int64{all.Successes, all.Failures, all.Ignored}
		since := [3]int64{now[0] - before[0], now[1] - before[1], now[2] - before[2]}
		before = now
		return since
	}
	count()
	return count
}

func TestRepliesAreAnswers(t *testing.T) {
	client, gate := newClient(t, newServer(t), redis.Options{})
	ctx := t.Context()
	require.NoError(t, client.Set(ctx, "name", "weir", 0).Err())
	_, err := client.Pipelined(ctx, func(p redis.Pipeliner) error { return p.Ping(ctx).Err() })
	require.NoError(t, err)
	counts := counter(gate) // without the handshakes
	require.ErrorIs(t, client.Get(ctx, "unknown").Err(), redis.Nil)
	require.ErrorContains(t, client.LPush(ctx, "name", "x").Err(), "WRONGTYPE")
	require.Equal(t, [3]int64{2, 0, 0}, counts())

	require.NoError(t, client.ConfigSet(ctx, "maxmemory", "1").Err())
	require.ErrorContains(t, client.Set(ctx, "name", "weir", 0).Err(), "OOM")
	require.Equal(t, [3]int64{1, 1, 0}, counts())
	require.NoError(t, client.ConfigSet(ctx, "maxmemory", "0").Err())

	_, err = client.Pipelined(ctx, func(p redis.Pipeliner) error {
		p.Set(ctx, "a", 1, 0)
		p.LPush(ctx, "a", 2) // WRONGTYPE
		p.Get(ctx, "unknown")
		return nil
	})
	require.Error(t, err)
	require.Equal(t, [3]int64{2, 0, 0}, counts(), "a pipeline is one call")

	_, err = client.TxPipelined(ctx, func(p redis.Pipeliner) error {
		p.Incr(ctx, "a")
		p.Incr(ctx, "b")
		return nil
	})
	require.NoError(t, err)
	require.Equal(t, [3]int64{1, 0, 0}, counts(), "and so is a transaction")

	err = client.Watch(ctx, func(tx *redis.Tx) error { // a transaction that another client disturbs
		if err := client.Set(ctx, "a", 9, 0).Err(); err != nil {
			return err
		}
		_, err := tx.TxPipelined(ctx, func(p redis.Pipeliner) error {
			p.Incr(ctx, "a")
			return nil
		})
		return err
	}, "a")
	require.ErrorIs(t, err, redis.TxFailedErr)
	require.Zero(t, counts()[1])
	require.Equal(t, breaker.Closed, gate.Breaker().State())
}

func TestAServerThatIsKilledAndComesBack(t *testing.T) {
	s := newServer(t)
	client, gate := newClient(t, s, redis.Options{MaxRetries: 5, DialerRetries: 1, MinRetryBackoff: -1, MaxRetryBackoff: -1})
	ctx := t.Context()
	require.NoError(t, client.Set(ctx, "name", "weir", 0).Err())
	s.kill()
	err := client.Get(ctx, "name").Err()
	require.ErrorIs(t, err, breaker.ErrOpen, "the sixth attempt is refused")
	require.True(t, gate.Tripped())
	require.EqualValues(t, 1, gate.Breaker().Totals().Refused, "a refusal is not retried")

	s.start(t)
	require.Eventually(t, func() bool {
		return client.Set(ctx, "name", "weir", 0).Err() == nil && gate.Breaker().State() == breaker.Closed
	}, time.Minute, 10*time.Millisecond)
	for range 20 {
		require.NoError(t, client.Get(ctx, "name").Err())
	}
}

// Many callers at once meet a breaker that is half-open, and none of them has a connection.
func TestManyCallersComeBackTogether(t *testing.T) {
	s := newServer(t)
	client, gate := newClient(t, s, redis.Options{MaxRetries: -1, DialerRetries: 1, PoolSize: 20})
	ctx := t.Context()
	require.NoError(t, client.Ping(ctx).Err())
	s.kill()
	for range 5 {
		_ = client.Ping(ctx).Err()
	}
	require.True(t, gate.Tripped())
	s.start(t)
	var wg sync.WaitGroup
	began := time.Now()
	for range 20 {
		wg.Go(func() {
			for client.Ping(ctx).Err() != nil && time.Since(began) < 30*time.Second {
				runtime.Gosched()
			}
		})
	}
	wg.Wait()
	require.Equal(t, breaker.Closed, gate.Breaker().State())
}

// An exhausted pool says nothing about the server, so it does not open the breaker. No permit is
// lost.
func TestAnExhaustedPool(t *testing.T) {
	s := newServer(t)
	client, gate := newClient(t, s, redis.Options{PoolSize: 1, MaxRetries: -1, PoolTimeout: 20 * time.Millisecond})
	ctx := t.Context()
	require.NoError(t, client.Ping(ctx).Err())
	counts := counter(gate)
	popped := make(chan error)
	// on the only connection
	go func() { popped <- client.BLPop(ctx, 5*time.Second, "list").Err() }()
	other := redis.NewClient(&redis.Options{Addr: s.addr})
	defer func() { _ = other.Close() }()
	require.Eventually(t, func() bool {
		clients, err := other.ClientList(ctx).Result()
		return err == nil && containsBlocked(clients)
	}, time.Minute, 5*time.Millisecond)
	for range 20 {
		require.ErrorIs(t, client.Ping(ctx).Err(), redis.ErrPoolTimeout)
	}
	require.Equal(t, breaker.Closed, gate.Breaker().State())
	require.Equal(t, [3]int64{0, 0, 20}, counts())
	require.NoError(t, other.LPush(ctx, "list", "x").Err())
	require.NoError(t, <-popped)
	require.Equal(t, [3]int64{1, 0, 0}, counts())
}

func containsBlocked(clients string) bool { return strings.Contains(clients, "cmd=blpop") }
