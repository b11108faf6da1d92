package fleet_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/fleet"
	"github.com/weir-go/weir/fleet/internal/redistest"
	"github.com/weir-go/weir/fleet/rediscell"
	"github.com/weir-go/weir/fleet/redisson"
	"github.com/weir-go/weir/internal/testenv"
	"github.com/weir-go/weir/limiter"
)

// shortContexts make contexts that end before Redis can answer.
var shortContexts = map[string]func(context.Context) (context.Context, context.CancelFunc){
	"a deadline": func(ctx context.Context) (context.Context, context.CancelFunc) {
		return context.WithTimeout(ctx, time.Duration(300+rand.IntN(900))*time.Microsecond)
	},
	"cancellation": func(ctx context.Context) (context.Context, context.CancelFunc) {
		ctx, cancel := context.WithCancel(ctx)
		time.AfterFunc(time.Duration(300+rand.IntN(900))*time.Microsecond, cancel)
		return ctx, cancel
	},
}

// A client of the service may choose the deadline of each call. It must not be able to open the
// breaker of Redis.
func TestShortDeadlinesAreNotFailuresOfRedis(t *testing.T) {
	t.Parallel()
	for how, shorten := range shortContexts {
		for leases, c := range map[string]fleet.Config{
			"no leases": {OnOutage: fleet.FailOpen}, "leases": {OnOutage: fleet.FailOpen, MaxLease: 2},
		} {
			t.Run(how+", "+leases, func(t *testing.T) {
				s := redistest.Start(t)
				proxy := redistest.NewProxy(t, s.Addr())
				client := redis.NewClient(&redis.Options{Addr: proxy.Addr(), ContextTimeoutEnabled: true})
				t.Cleanup(func() { _ = client.Close() })
				l := connectTo(t, client, fleet.LinkConfig{Timeout: longTimeout})
				b := newBucket(l, c)
				proxy.Delay(ms)
				before := l.Breaker().Counts()
				var gaveUp, withoutRedis atomic.Int64
				var g sync.WaitGroup
				for range 8 {
					g.Go(func() {
						for range 50 {
							ctx, cancel := shorten(t.Context())
							if _, err := b.Take(ctx, newKey(), 1); err != nil {
								gaveUp.Add(1)
							}
							cancel()
						}
					})
				}
				for range 2 {
					g.Go(func() {
						for range 50 {
							if r, err := b.Take(t.Context(), newKey(), 1); err != nil || r.From == fleet.FromOutage {
								withoutRedis.Add(1)
							}
						}
					})
				}
				g.Wait()
				require.Positive(t, gaveUp.Load(), "the test has shown nothing")
				require.Zero(t, withoutRedis.Load(), "requests without a deadline that were decided without Redis")
				require.Zero(t, transitions(l.Breaker()))
				require.Equal(t, before.Failures, l.Breaker().Counts().Failures)
				require.NoError(t, l.Err())
			})
		}
	}
}

// A connection closed because of a short deadline would cost Redis a new one.
func TestShortDeadlinesCloseNoConnections(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	proxy := redistest.NewProxy(t, s.Addr())
	client := redis.NewClient(&redis.Options{Addr: proxy.Addr(), ContextTimeoutEnabled: true})
	t.Cleanup(func() { _ = client.Close() })
	b := newBucket(connectTo(t, client, fleet.LinkConfig{Timeout: longTimeout}), errorOnOutage)
	proxy.Delay(2 * ms)
	for range 100 {
		ctx, cancel := context.WithTimeout(t.Context(), ms)
		_, _ = b.Take(ctx, newKey(), 1)
		cancel()
	}
	require.LessOrEqual(t, client.PoolStats().StaleConns, uint32(1))
	require.LessOrEqual(t, client.PoolStats().Misses, uint32(5), "connections made")
}

func TestHangingRedisIsDetectedDespiteShortDeadlines(t *testing.T) {
	t.Parallel()
	const timeout = 100 * ms
	for how, shorten := range shortContexts {
		for _, callers := range []int{1, 16} {
			t.Run(fmt.Sprintf("%s, %d callers", how, callers), func(t *testing.T) {
				t.Parallel()
				s := redistest.Start(t)
				l := connectTo(t, newClient(t, s), fleet.LinkConfig{Timeout: timeout, Breaker: breaker.Config{Cooldown: time.Minute}})
				b := newBucket(l, errorOnOutage)
				s.Pause()
				defer s.Continue()
				began := testenv.Running()
				var g sync.WaitGroup
				for range callers {
					g.Go(func() {
						for !l.Breaker().Tripped() && testenv.Running()-began < longTimeout {
							start := testenv.Running()
							ctx, cancel := shorten(t.Context())
							_, err := b.Take(ctx, newKey(), 1)
							cancel()
							if took := testenv.Running() - start; err == nil || took > timeout+timeoutSlack {
								t.Errorf("%v after %v", err, took)
							}
						}
					})
				}
				g.Wait()
				require.True(t, l.Breaker().Tripped())
				require.Less(t, testenv.Running()-began, 5*(timeout+timeoutSlack))
			})
		}
	}
}

func TestACallerThatGivesUpGetsTheErrorOfItsContext(t *testing.T) {
	t.Parallel()
	f := newFakeServer(t, map[string]string{"evalsha": ""})
	l := connectTo(t, f.client(), fleet.LinkConfig{Timeout: 2 * time.Second})
	b := newBucket(l, fleet.Config{OnOutage: fleet.FailOpen})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		for f.count() == 0 {
			waitFor(ms)
		}
		cancel()
	}()
	_, err := b.Take(ctx, "user", 1)
	require.Equal(t, context.Canceled, err)
	_, err = b.Take(ctx, "user", 1)
	require.Equal(t, context.Canceled, err)
	require.Len(t, f.commands(), 1)
	require.Eventually(t, func() bool { return l.Breaker().Counts().Failures == 1 }, longTimeout, ms, "Redis did not answer within the Timeout")
}

// Every method returns when the context ends, whatever it is doing, though Redis hangs and the
// Timeout is long.
func TestCallersReturnWhenTheirContextEnds(t *testing.T) {
	t.Parallel()
	limits := map[string]fleet.Limits{
		"quick":       {fleet.TokenBucket{Rate: limiter.PerSecond(10), Burst: 10}},
		"window":      {fleet.FixedWindow{Limit: 10, Window: time.Minute}},
		"cell":        {rediscell.Limit(9, 10, time.Second)},
		"log":         {fleet.SlidingLog{Limit: 10, Window: time.Minute}},
		"with shared": {fleet.FixedWindow{Limit: 10, Window: time.Minute}, fleet.Shared{Limit: fleet.FixedWindow{Limit: 10, Window: time.Minute}}},
	}
	methods := map[string]func(context.Context, *fleet.Limiter) error{
		"Take":   func(ctx context.Context, b *fleet.Limiter) error { _, err := b.Take(ctx, "user", 1); return err },
		"Wait":   func(ctx context.Context, b *fleet.Limiter) error { return b.Wait(ctx, "user", 1) },
		"Refund": func(ctx context.Context, b *fleet.Limiter) error { return b.Refund(ctx, time.Now(), "user", 1) },
		"Reset":  func(ctx context.Context, b *fleet.Limiter) error { return b.Reset(ctx, "user") },
		"Take of a key": func(ctx context.Context, b *fleet.Limiter) error {
			_, err := b.Get("user").Take(ctx, 1)
			return err
		},
		"Reserve": func(ctx context.Context, b *fleet.Limiter) error { _, err := b.Reserve(ctx, "user", 1); return err },
		"Reserve of a key": func(ctx context.Context, b *fleet.Limiter) error {
			_, _, err := b.Get("user").(reserver).Reserve(ctx, 1)
			return err
		},
		"WaitReserve of a key": func(ctx context.Context, b *fleet.Limiter) error {
			_, err := b.Get("user").(reserver).WaitReserve(ctx, 1)
			return err
		},
		"Wait of a key": func(ctx context.Context, b *fleet.Limiter) error {
			return b.Get("user").(limiter.WaitLimiter).Wait(ctx, 1)
		},
		"Throttle": func(ctx context.Context, b *fleet.Limiter) error {
			_, err := rediscell.Throttle(ctx, b, "user", 1)
			return err
		},
		"SetRate": func(ctx context.Context, b *fleet.Limiter) error {
			return redisson.SetRate(ctx, b, "user", 20, time.Minute)
		},
	}
	for name, list := range limits {
		for method, call := range methods {
			if method == "SetRate" && name != "log" {
				continue
			}
			for how, shorten := range shortContexts {
				for leases := range 2 {
					if leases > 0 && name == "with shared" {
						continue
					}
					for kind := range clientKinds {
						if kind != "client" && name != "quick" {
							continue
						}
						t.Run(fmt.Sprintf("%s of %s, %s, leases %d, %s", method, name, how, leases, kind), func(t *testing.T) {
							l, _ := hangingLink(t, kind)
							b := newLimiters(l, "hang", fleet.Config{OnOutage: fleet.FailOpen, MaxLease: 10 * leases}, list...)
							requireReturnsInTime(t, shorten, func(ctx context.Context) error { return call(ctx, b) })
						})
					}
				}
			}
		}
	}
}

// hangingLink returns a link to a server that does not answer requests of limiters.
func hangingLink(t *testing.T, kind string) (*fleet.Link, *fakeServer) {
	f := newLyingServer(t, map[string]string{"eval": ":1\r\n"})
	client := clientKinds[kind](f.addr)
	t.Cleanup(func() { _ = client.Close() })
	l := connectTo(t, client, fleet.LinkConfig{Timeout: longTimeout})
	for _, command := range []string{"evalsha", "eval", "cl.throttle"} {
		f.setReply(command, "")
	}
	return l, f
}

// requireReturnsInTime requires that a call returns the error of its context when that ends.
func requireReturnsInTime(t *testing.T, shorten func(context.Context) (context.Context, context.CancelFunc), call func(context.Context) error) {
	t.Helper()
	ctx, cancel := shorten(t.Context())
	defer cancel()
	began := testenv.Running()
	require.ErrorIs(t, call(ctx), ctx.Err())
	require.Error(t, ctx.Err())
	require.Less(t, testenv.Running()-began, timeoutSlack)
}

func TestCloseReturnsWhenItsContextEnds(t *testing.T) {
	t.Parallel()
	for how, shorten := range shortContexts {
		for kind := range clientKinds {
			t.Run(how+", "+kind, func(t *testing.T) {
				l, f := hangingLink(t, kind)
				f.setReply("evalsha", integerReply(1, 1000, 999, 0, 1_000_000))
				b := newLimiter(l, "close", fleet.FixedWindow{Limit: 1000, Window: time.Minute}, fleet.Config{OnOutage: fleet.FailOpen, MaxLease: 10})
				for from := ""; from != fleet.FromLease; {
					r, err := b.Take(t.Context(), "user", 1)
					require.NoError(t, err)
					from = r.From
				}
				f.setReply("evalsha", "")
				requireReturnsInTime(t, shorten, b.Close)
			})
		}
	}
}

func TestConnectReturnsWhenItsContextEnds(t *testing.T) {
	t.Parallel()
	for how, shorten := range shortContexts {
		for kind, newClient := range clientKinds {
			t.Run(how+", "+kind, func(t *testing.T) {
				client := newClient(newLyingServer(t, map[string]string{"info": "", "cluster": ""}).addr)
				defer func() { _ = client.Close() }()
				requireReturnsInTime(t, shorten, func(ctx context.Context) error {
					_, err := fleet.Connect(ctx, "hangs", client, fleet.LinkConfig{Timeout: longTimeout})
					return err
				})
			})
		}
	}
}

// The server accepts connections and says nothing. Connect then asks whether it does without TLS.
func TestConnectOverTLSReturnsWhenItsContextEnds(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = listener.Close() }()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var canceled atomic.Int64
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = conn.Close() }()
				if first, _ := bufio.NewReader(conn).ReadByte(); first == 'P' { // PING without TLS
					canceled.Store(int64(testenv.Running()))
					cancel()
				}
				<-t.Context().Done()
			}()
		}
	}()
	client := redis.NewClient(&redis.Options{Addr: listener.Addr().String(), TLSConfig: &tls.Config{}, ContextTimeoutEnabled: true})
	defer func() { _ = client.Close() }()
	_, err = fleet.Connect(ctx, "hangs", client, fleet.LinkConfig{Timeout: timeoutSlack + time.Second})
	require.Equal(t, context.Canceled, err)
	require.Less(t, testenv.Running()-time.Duration(canceled.Load()), timeoutSlack)
}
