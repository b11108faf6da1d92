package pipeline_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/fleet/internal/pipeline"
	"github.com/weir-go/weir/fleet/internal/redistest"
)

// writeCounter counts the writes of a client and the commands in them.
type writeCounter struct {
	single, batches, batched atomic.Int64
	do                       func() // before each write
	decides                  func() // before each decision, if anything
}

func (h *writeCounter) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h *writeCounter) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if cmd.Name() == "eval" { // not a command that the client itself sends after connecting
			h.single.Add(1)
			h.do()
		}
		if cmd.Name() == "evalsha" && h.decides != nil {
			h.decides()
		}
		return next(ctx, cmd)
	}
}

func (h *writeCounter) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if cmds[0].Name() == "eval" {
			h.batches.Add(1)
			h.batched.Add(int64(len(cmds)))
			h.do()
		}
		return next(ctx, cmds)
	}
}

// blockedQueue is a writer with one lane that is blocked by the first caller, so that others queue.
type blockedQueue struct {
	hook   *writeCounter
	writer *pipeline.Writer
	open   chan struct{} // closed to unblock the first caller
	group  sync.WaitGroup
}

func newQueue(t *testing.T, c pipeline.Config) *blockedQueue {
	t.Helper()
	q := &blockedQueue{open: make(chan struct{})}
	q.hook = &writeCounter{do: func() { <-q.open }}
	client := dialServer(t, redistest.Start(t).Addr())
	client.AddHook(q.hook)
	c.Lanes = 1
	q.writer = pipeline.New(client, c)
	return q
}

// join starts a call and returns when it is queued or being sent.
func (q *blockedQueue) join(ctx context.Context, n int, then func(int64, error)) {
	before := pipeline.Waiting(q.writer) + int(q.hook.single.Load())
	q.group.Go(func() { then(addTo(ctx, q.writer, "k", n)) })
	for pipeline.Waiting(q.writer)+int(q.hook.single.Load()) == before {
		<-time.After(time.Millisecond)
	}
}

func (q *blockedQueue) finish() {
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
	total, err := addTo(t.Context(), q.writer, "k", 0)
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
	// leads the second batch, and is cancelled while it is on its way
	q.join(ctx, 10, func(int64, error) {})
	q.join(t.Context(), 100, ok)
	q.finish()
	require.EqualValues(t, 1, q.hook.batches.Load())
	total, err := addTo(t.Context(), q.writer, "k", 0)
	require.NoError(t, err)
	require.EqualValues(t, 111, total)
}

// A leader with a short deadline stays until the reply comes, so the other callers get their
// replies.
func TestLeaderWithAShortDeadlineDoesNotAffectItsBatch(t *testing.T) {
	t.Parallel()
	q := newQueue(t, pipeline.Config{Timeout: longLimit})
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
	total, err := addTo(t.Context(), q.writer, "k", 0)
	require.NoError(t, err)
	require.EqualValues(t, 1111, total)
}
