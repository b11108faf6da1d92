package pipeline_test

import (
	"context"
	cryptorand "crypto/rand"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/fleet/internal/pipeline"
	"github.com/weir-go/weir/fleet/internal/redistest"
)

var shared redistest.Package

func TestMain(m *testing.M) { os.Exit(shared.Run(m)) }

var cluster = sync.OnceValue(func() *redistest.Cluster { return redistest.StartCluster(&shared) })

// count adds to a key and returns the sum.
const count = "return {redis.call('INCRBY', KEYS[1], ARGV[1])}"

func add(ctx context.Context, w *pipeline.Writer, key string, n int) (int64, error) {
	return addBy(ctx, w, time.Now().Add(patience), key, n)
}

// patience is a due time that no test reaches unless something hangs.
const patience = 10 * time.Second

// addBy is add with a due time.
func addBy(ctx context.Context, w *pipeline.Writer, due time.Time, key string, n int) (int64, error) {
	answer, _, err := w.Do(ctx, due, "eval", count, 1, key, n)
	if err != nil {
		return 0, err
	}
	return answer[0], nil
}

// dial returns a client with typical options: it obeys deadlines and retries.
func dial(t *testing.T, addr string) *redis.Client {
	t.Helper()
	c := redis.NewClient(&redis.Options{Addr: addr, ContextTimeoutEnabled: true, MaxRetries: 3, PoolSize: 20})
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// fresh returns an unused key with a prefix.
func fresh(prefix string) string { return prefix + cryptorand.Text() }

func dialCluster(t *testing.T, addrs []string) *redis.ClusterClient {
	t.Helper()
	c := redis.NewClusterClient(&redis.ClusterOptions{Addrs: addrs, ContextTimeoutEnabled: true})
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func TestEveryCallerGetsTheAnswerToItsOwnCommand(t *testing.T) {
	server := redistest.Start(t)
	clients := map[string]redis.UniversalClient{
		"stand-alone": dial(t, server.Addr()),
		"cluster":     dialCluster(t, cluster().Addrs()),
	}
	for name, client := range clients {
		for _, callers := range []int{1, 8, 64} {
			t.Run(fmt.Sprintf("%s, %d callers", name, callers), func(t *testing.T) {
				w := pipeline.New(client, pipeline.Config{Timeout: 10 * time.Second})
				var g sync.WaitGroup
				for i := range callers {
					key := fresh("k")
					g.Go(func() {
						for round := range int64(50) {
							n, err := add(t.Context(), w, key, 1)
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

// writes counts the writes of a client, and how many commands they had.
type writes struct {
	single, batches, batched atomic.Int64
	do                       func() // before each write
	decides                  func() // before each decision, if anything
}

func (h *writes) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h *writes) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if cmd.Name() == "eval" { // and not a greeting of the client's own
			h.single.Add(1)
			h.do()
		}
		if cmd.Name() == "evalsha" && h.decides != nil {
			h.decides()
		}
		return next(ctx, cmd)
	}
}

func (h *writes) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if cmds[0].Name() == "eval" {
			h.batches.Add(1)
			h.batched.Add(int64(len(cmds)))
			h.do()
		}
		return next(ctx, cmds)
	}
}

// queue is a writer with one lane that is blocked by the first caller, so that others queue.
type queue struct {
	hook   *writes
	writer *pipeline.Writer
	open   chan struct{} // closed to let the first one go
	group  sync.WaitGroup
}

func newQueue(t *testing.T, c pipeline.Config) *queue {
	t.Helper()
	q := &queue{open: make(chan struct{})}
	q.hook = &writes{do: func() { <-q.open }}
	client := dial(t, redistest.Start(t).Addr())
	client.AddHook(q.hook)
	c.Lanes = 1
	q.writer = pipeline.New(client, c)
	return q
}

// join starts a call and returns when it is queued or being sent.
func (q *queue) join(ctx context.Context, n int, then func(int64, error)) {
	before := pipeline.Waiting(q.writer) + int(q.hook.single.Load())
	q.group.Go(func() { then(add(ctx, q.writer, "k", n)) })
	for pipeline.Waiting(q.writer)+int(q.hook.single.Load()) == before {
		<-time.After(time.Millisecond)
	}
}

func (q *queue) finish() {
	close(q.open)
	q.group.Wait()
}

func TestQueuedCommandsAreBatched(t *testing.T) {
	for _, test := range []struct {
		name              string
		batch             int
		callers           int
		batches, together int64
	}{
		{"nobody waits", 128, 1, 0, 0},
		{"one waits and goes alone", 128, 2, 0, 0},
		{"all in one", 128, 41, 1, 40},
		{"no more than Batch in one", 16, 41, 3, 40},
	} {
		t.Run(test.name, func(t *testing.T) {
			q := newQueue(t, pipeline.Config{Timeout: 10 * time.Second, Batch: test.batch})
			var sum atomic.Int64
			for range test.callers {
				q.join(t.Context(), 1, func(n int64, err error) {
					if err != nil {
						t.Error(err)
					}
					sum.Add(n)
				})
			}
			q.finish()
			n := int64(test.callers)
			require.Equal(t, n*(n+1)/2, sum.Load(), "each reply must come once")
			require.Equal(t, test.batches, q.hook.batches.Load(), "batches")
			require.Equal(t, test.together, q.hook.batched.Load(), "commands in batches")
		})
	}
}

func TestCancellationInTheQueueSendsNothing(t *testing.T) {
	q := newQueue(t, pipeline.Config{Timeout: 10 * time.Second})
	ok := func(_ int64, err error) {
		if err != nil {
			t.Error(err)
		}
	}
	q.join(t.Context(), 1, ok)
	q.join(t.Context(), 10, ok)
	ctx, cancel := context.WithCancel(t.Context())
	left := make(chan error)
	q.join(ctx, 100, func(_ int64, err error) { left <- err })
	q.join(t.Context(), 1000, ok)
	cancel()
	require.ErrorIs(t, <-left, context.Canceled, "cancellation returns while the server is blocked")
	q.finish()
	total, err := add(t.Context(), q.writer, "k", 0)
	require.NoError(t, err)
	require.EqualValues(t, 1011, total)
}

func TestCancelledLeaderDoesNotAffectItsBatch(t *testing.T) {
	q := newQueue(t, pipeline.Config{Timeout: 10 * time.Second})
	ok := func(_ int64, err error) {
		if err != nil {
			t.Error(err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	q.hook.do = func() {
		<-q.open
		if q.hook.batches.Load() == 1 {
			cancel()
		}
	}
	q.join(t.Context(), 1, ok)
	q.join(ctx, 10, func(int64, error) {}) // leads the second batch, and is cancelled while it is on its way
	q.join(t.Context(), 100, ok)
	q.finish()
	require.EqualValues(t, 1, q.hook.batches.Load())
	total, err := add(t.Context(), q.writer, "k", 0)
	require.NoError(t, err)
	require.EqualValues(t, 111, total)
}

// A leader with a short deadline stays until the reply comes, so the other callers get their
// replies.
func TestLeaderWithAShortDeadlineDoesNotAffectItsBatch(t *testing.T) {
	t.Parallel()
	q := newQueue(t, pipeline.Config{Timeout: patience})
	ok := func(_ int64, err error) {
		if err != nil {
			t.Error(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	q.hook.do = func() {
		<-q.open
		if q.hook.batches.Load() == 1 {
			<-ctx.Done()
		}
	}
	q.join(t.Context(), 1, ok)
	q.join(ctx, 10, func(int64, error) {})
	q.join(t.Context(), 100, ok)
	q.join(t.Context(), 1000, ok)
	q.finish()
	require.EqualValues(t, 3, q.hook.batched.Load())
	total, err := add(t.Context(), q.writer, "k", 0)
	require.NoError(t, err)
	require.EqualValues(t, 1111, total)
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
		_, _ = add(t.Context(), q.writer, "k", 1)
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
	_, err := add(t.Context(), q.writer, "k", 0)
	require.NoError(t, err, "the lane is free again")
}

func TestRandomCancellationsFreeTheLane(t *testing.T) {
	t.Parallel()
	client := dial(t, redistest.Start(t).Addr())
	w := pipeline.New(client, pipeline.Config{Timeout: 10 * time.Second, Lanes: 1})
	var g sync.WaitGroup
	var given, answered atomic.Int64
	for i := range 16 {
		g.Go(func() {
			r := rand.New(rand.NewPCG(uint64(i), 1))
			for range 300 {
				ctx, cancel := context.WithCancel(t.Context())
				stop := time.AfterFunc(time.Duration(r.IntN(1000))*time.Microsecond, cancel)
				if _, err := add(ctx, w, "k", 1); err == nil {
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
	total, err := add(t.Context(), w, "k", 0)
	require.NoError(t, err)
	require.GreaterOrEqual(t, total, answered.Load())
	require.LessOrEqual(t, total, answered.Load()+given.Load())
}

func TestADoneContextSendsNothing(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := add(ctx, pipeline.New(nil, pipeline.Config{Timeout: time.Second}), "k", 1)
	require.ErrorIs(t, err, context.Canceled)
}

func TestErrorsGoToTheirCallers(t *testing.T) {
	q := newQueue(t, pipeline.Config{Timeout: 10 * time.Second})
	q.join(t.Context(), 1, func(int64, error) {})
	var faults sync.Map
	for i := range 9 {
		before := pipeline.Waiting(q.writer)
		q.group.Go(func() {
			script := count
			if i%3 == 0 {
				script = "return redis.call('NONESUCH', KEYS[1], ARGV[1])"
			}
			_, _, err := q.writer.Do(t.Context(), time.Now().Add(patience), "eval", script, 1, "k", 1)
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
	total, err := add(t.Context(), q.writer, "k", 0)
	require.NoError(t, err)
	require.EqualValues(t, 7, total)
}

func TestNothingIsSentTwiceWhenTheAnswerIsLost(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	proxy := redistest.NewProxy(t, server.Addr())
	master := cluster().Nodes[0]
	clusterProxy := redistest.NewProxy(t, master.Addr())
	through := redis.NewClusterClient(&redis.ClusterOptions{
		Addrs: cluster().Addrs(), ContextTimeoutEnabled: true,
		Dialer: func(ctx context.Context, network, addr string) (net.Conn, error) {
			if addr == master.Addr() {
				addr = clusterProxy.Addr()
			}
			return new(net.Dialer).DialContext(ctx, network, addr)
		},
	})
	t.Cleanup(func() { _ = through.Close() })
	for _, test := range []struct {
		name   string
		client redis.UniversalClient
		proxy  *redistest.Proxy
		key    string
	}{
		{"stand-alone", dial(t, proxy.Addr()), proxy, "k"},
		{"cluster", through, clusterProxy, "{b}"}, // slot 3300, of the first master
	} {
		for _, callers := range []int{1, 64} {
			t.Run(fmt.Sprintf("%s, %d callers", test.name, callers), func(t *testing.T) {
				w := pipeline.New(test.client, pipeline.Config{Timeout: 2 * time.Second, Lanes: 2})
				key := fresh(test.key)
				_, err := add(t.Context(), w, key, 0)
				require.NoError(t, err)
				var sent, lost atomic.Int64
				var g sync.WaitGroup
				for range callers {
					g.Go(func() {
						for round := range 20 {
							if round%5 == 0 {
								test.proxy.LoseReplies(1)
							}
							sent.Add(1)
							if _, err := add(t.Context(), w, key, 1); err != nil {
								lost.Add(1)
							}
						}
					})
				}
				g.Wait()
				test.proxy.LoseReplies(0)
				total, err := add(t.Context(), w, key, 0)
				require.NoError(t, err)
				require.Positive(t, lost.Load(), "the test has shown nothing")
				require.LessOrEqual(t, total, sent.Load(), "of %d, with %d answers lost", sent.Load(), lost.Load())
				require.GreaterOrEqual(t, total, sent.Load()-lost.Load())
			})
		}
	}
}

func TestNoCallLastsLongerThanTheTimeout(t *testing.T) {
	t.Parallel()
	const timeout, slack = time.Second, 1500 * time.Millisecond // the client's own read timeout is 3 s
	server := redistest.Start(t)
	w := pipeline.New(dial(t, server.Addr()), pipeline.Config{Timeout: timeout})
	_, err := add(t.Context(), w, "k", 0)
	require.NoError(t, err)
	server.Pause()
	var unsent, silent atomic.Int64
	var g sync.WaitGroup
	for range 100 {
		g.Go(func() {
			for range 3 {
				start := time.Now()
				_, err := addBy(t.Context(), w, start.Add(timeout), "k", 1)
				if took := time.Since(start); took > timeout+slack || err == nil {
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
	total, err := add(t.Context(), w, "k", 0)
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
						if _, err := add(b.Context(), w, "k", 1); err != nil {
							b.Error(err)
						}
					}
				})
			}
			g.Wait()
		})
	}
}
