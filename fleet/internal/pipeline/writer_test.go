package pipeline_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/fleet/internal/pipeline"
	"github.com/weir-go/weir/fleet/internal/redistest"
	"github.com/weir-go/weir/internal/testenv"
)

func TestEveryCallerGetsTheAnswerToItsOwnCommand(t *testing.T) {
	server := redistest.Start(t)
	clients := map[string]redis.UniversalClient{
		"stand-alone": dialServer(t, server.Addr()),
		"cluster":     dialCluster(t, cluster().Addrs()),
	}
	for name, client := range clients {
		for _, callers := range []int{1, 8, 64} {
			t.Run(fmt.Sprintf("%s, %d callers", name, callers), func(t *testing.T) {
				w := pipeline.New(client, pipeline.Config{Timeout: 10 * time.Second})
				var g sync.WaitGroup
				for i := range callers {
					key := freshKey("k")
					g.Go(func() {
						for round := range int64(50) {
							n, err := addTo(t.Context(), w, key, 1)
							if err != nil || n != round+1 {
								t.Errorf("caller %d, round %d: %d, %v", i, round, n, err)
							}
						}
					})
				}
				g.Wait()
			})
		}
	}
}

func TestPanicInAHookBlocksNoCaller(t *testing.T) {
	q := newQueue(t, pipeline.Config{Timeout: 10 * time.Second})
	var once atomic.Bool
	q.hook.do = func() {
		<-q.open
		if q.hook.batches.Load() == 1 && once.CompareAndSwap(false, true) {
			panic("a hook's")
		}
	}
	q.join(t.Context(), 1, func(int64, error) {})
	panicked := make(chan any)
	go func() {
		defer func() { panicked <- recover() }()
		_, _ = addTo(t.Context(), q.writer, "k", 1)
	}()
	for pipeline.Waiting(q.writer) == 0 {
		<-time.After(time.Millisecond)
	}
	q.join(t.Context(), 1, func(_ int64, err error) {
		if err == nil || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a caller in the batch that panicked: %v", err)
		}
	})
	close(q.open)
	require.Equal(t, "a hook's", <-panicked)
	q.group.Wait()
	_, err := addTo(t.Context(), q.writer, "k", 0)
	require.NoError(t, err, "the lane is free again")
}

func TestRandomCancellationsFreeTheLane(t *testing.T) {
	t.Parallel()
	client := dialServer(t, redistest.Start(t).Addr())
	w := pipeline.New(client, pipeline.Config{Timeout: 10 * time.Second, Lanes: 1})
	var g sync.WaitGroup
	var given, answered atomic.Int64
	for i := range 16 {
		g.Go(func() {
			r := rand.New(rand.NewPCG(uint64(i), 1))
			for range 300 {
				ctx, cancel := context.WithCancel(t.Context())
				stop := time.AfterFunc(time.Duration(r.IntN(1000))*time.Microsecond, cancel)
				if _, err := addTo(ctx, w, "k", 1); err == nil {
					answered.Add(1)
				} else {
					given.Add(1)
				}
				stop.Stop()
				cancel()
			}
		})
	}
	g.Wait()
	require.Zero(t, pipeline.Busy(w))
	require.Positive(t, given.Load())
	total, err := addTo(t.Context(), w, "k", 0)
	require.NoError(t, err)
	require.GreaterOrEqual(t, total, answered.Load())
	require.LessOrEqual(t, total, answered.Load()+given.Load())
}

func TestADoneContextSendsNothing(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := addTo(ctx, pipeline.New(nil, pipeline.Config{Timeout: time.Second}), "k", 1)
	require.ErrorIs(t, err, context.Canceled)
}

func TestErrorsGoToTheirCallers(t *testing.T) {
	q := newQueue(t, pipeline.Config{Timeout: 10 * time.Second})
	q.join(t.Context(), 1, func(int64, error) {})
	var faults sync.Map
	for i := range 9 {
		before := pipeline.Waiting(q.writer)
		q.group.Go(func() {
			script := countScript
			if i%3 == 0 {
				script = "return redis.call('NONESUCH', KEYS[1], ARGV[1])"
			}
			_, _, err := q.writer.Do(t.Context(), time.Now().Add(longLimit), "eval", script, 1, "k", 1)
			faults.Store(i, err)
		})
		for pipeline.Waiting(q.writer) == before {
			<-time.After(time.Millisecond)
		}
	}
	q.finish()
	for i := range 9 {
		if err, _ := faults.Load(i); i%3 == 0 {
			require.ErrorContains(t, err.(error), "command called from script", "command %d", i)
		} else {
			require.Nil(t, err, "command %d", i)
		}
	}
	total, err := addTo(t.Context(), q.writer, "k", 0)
	require.NoError(t, err)
	require.EqualValues(t, 7, total)
}

// throughProxy returns a client of the cluster that reaches the first master through a proxy.
func throughProxy(t *testing.T) (redis.UniversalClient, *redistest.Proxy) {
	master := cluster().Nodes[0]
	proxy := redistest.NewProxy(t, master.Addr())
	client := redis.NewClusterClient(&redis.ClusterOptions{
		Addrs: cluster().Addrs(), ContextTimeoutEnabled: true,
		Dialer: func(ctx context.Context, network, addr string) (net.Conn, error) {
			if addr == master.Addr() {
				addr = proxy.Addr()
			}
			return new(net.Dialer).DialContext(ctx, network, addr)
		},
	})
	t.Cleanup(func() { _ = client.Close() })
	return client, proxy
}

// addWhileRepliesAreLost adds 1 twenty times for each caller, and returns how many additions were
// sent, and of how many the reply was lost.
func addWhileRepliesAreLost(t *testing.T, w *pipeline.Writer, key string, callers int, proxy *redistest.Proxy) (sent, lost int64) {
	var failed atomic.Int64
	var g sync.WaitGroup
	for range callers {
		g.Go(func() {
			for round := range 20 {
				if round%5 == 0 {
					proxy.LoseReplies(1)
				}
				if _, err := addTo(t.Context(), w, key, 1); err != nil {
					failed.Add(1)
				}
			}
		})
	}
	g.Wait()
	proxy.LoseReplies(0)
	return int64(20 * callers), failed.Load()
}

func TestNothingIsSentTwiceWhenTheAnswerIsLost(t *testing.T) {
	t.Parallel()
	proxy := redistest.NewProxy(t, redistest.Start(t).Addr())
	through, clusterProxy := throughProxy(t)
	for _, test := range []struct {
		name   string
		client redis.UniversalClient
		proxy  *redistest.Proxy
		key    string
	}{
		{"stand-alone", dialServer(t, proxy.Addr()), proxy, "k"},
		{"cluster", through, clusterProxy, "{b}"}, // slot 3300, of the first master
	} {
		for _, callers := range []int{1, 64} {
			t.Run(fmt.Sprintf("%s, %d callers", test.name, callers), func(t *testing.T) {
				w := pipeline.New(test.client, pipeline.Config{Timeout: 2 * time.Second, Lanes: 2})
				key := freshKey(test.key)
				_, err := addTo(t.Context(), w, key, 0)
				require.NoError(t, err)
				sent, lost := addWhileRepliesAreLost(t, w, key, callers, test.proxy)
				total, err := addTo(t.Context(), w, key, 0)
				require.NoError(t, err)
				require.Positive(t, lost, "the test has shown nothing")
				require.LessOrEqual(t, total, sent, "of %d, with %d answers lost", sent, lost)
				require.GreaterOrEqual(t, total, sent-lost)
			})
		}
	}
}

func TestNoCallLastsLongerThanTheTimeout(t *testing.T) {
	t.Parallel()
	// the client's own read timeout is 3 s
	const timeout, slack = time.Second, 1500 * time.Millisecond
	server := redistest.Start(t)
	w := pipeline.New(dialServer(t, server.Addr()), pipeline.Config{Timeout: timeout})
	_, err := addTo(t.Context(), w, "k", 0)
	require.NoError(t, err)
	server.Pause()
	var unsent, silent atomic.Int64
	var g sync.WaitGroup
	for range 100 {
		g.Go(func() {
			for range 3 {
				start, running := time.Now(), testenv.Running()
				_, err := addToBy(t.Context(), w, start.Add(timeout), "k", 1)
				if took := testenv.Running() - running; took > timeout+slack || err == nil {
					t.Errorf("after %v: %v", took, err)
				}
				if errors.Is(err, pipeline.ErrUnsent) {
					unsent.Add(1)
				} else {
					silent.Add(1)
				}
			}
		})
	}
	g.Wait()
	server.Continue()
	total, err := addTo(t.Context(), w, "k", 0)
	require.NoError(t, err, "the server is back")
	require.LessOrEqual(t, total, silent.Load(), "unsent commands were executed; %d were unsent", unsent.Load())
	require.Positive(t, unsent.Load())
	require.EqualValues(t, 300, unsent.Load()+silent.Load())
}

func BenchmarkDo(b *testing.B) {
	client := redistest.Start(&shared).Client()
	for _, callers := range []int{1, 8, 64} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			w := pipeline.New(client, pipeline.Config{Timeout: time.Second})
			b.ReportAllocs()
			var left atomic.Int64
			left.Store(int64(b.N))
			var g sync.WaitGroup
			for range callers {
				g.Go(func() {
					for left.Add(-1) >= 0 {
						if _, err := addTo(b.Context(), w, "k", 1); err != nil {
							b.Error(err)
						}
					}
				})
			}
			g.Wait()
		})
	}
}
