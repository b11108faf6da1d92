package pipeline_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/fleet/internal/pipeline"
)

// reply is an error reply of a server.
type reply string

func (r reply) Error() string { return string(r) }
func (reply) RedisError()     {}

// tryAgainServer replies TRYAGAIN to the first write, and then succeeds for as many writes as
// answered says, each after a delay. After that it hangs.
type tryAgainServer struct {
	pause    time.Duration
	answered int64 // besides the first
	writes   atomic.Int64
}

func (s *tryAgainServer) answer(ctx context.Context, cmds []redis.Cmder) (err error) {
	switch write := s.writes.Add(1); {
	case write == 1:
		time.Sleep(s.pause)
		err = reply("TRYAGAIN Multiple keys request during rehashing of slot")
	case write <= 1+s.answered:
		time.Sleep(s.pause / 8)
	default:
		<-ctx.Done()
		err = ctx.Err()
	}
	for _, cmd := range cmds {
		cmd.SetErr(err)
	}
	return err
}

func (s *tryAgainServer) DialHook(next redis.DialHook) redis.DialHook { return next }

func (s *tryAgainServer) ProcessHook(redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error { return s.answer(ctx, []redis.Cmder{cmd}) }
}

func (s *tryAgainServer) ProcessPipelineHook(redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return s.answer
}

// A command that is sent again stands behind commands that came later and are due later.
func TestRetriedCommandEndsWhenItIsDue(t *testing.T) {
	const timeout = 400 * time.Millisecond
	for name, c := range map[string]struct {
		others   int
		answered int64
	}{
		"in the queue": {1, 0},
		// the first takes the second along, and the third this one
		"in the batch of another": {3, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client := dialServer(t, "127.0.0.1:1")
				client.AddHook(&tryAgainServer{pause: timeout / 2, answered: c.answered})
				w := pipeline.New(client, pipeline.Config{Timeout: timeout, Lanes: 1, Batch: 2})
				var g sync.WaitGroup
				began := time.Now()
				var took time.Duration
				var led bool
				var err error
				g.Go(func() {
					_, led, err = w.Do(t.Context(), began.Add(timeout), "get", "again")
					took = time.Since(began)
				})
				time.Sleep(timeout * 3 / 8)
				for range c.others {
					g.Go(func() { _, _, _ = w.Do(t.Context(), time.Now().Add(timeout), "get", "later") })
				}
				g.Wait()
				require.LessOrEqual(t, took, timeout)
				require.False(t, led)
				if c.answered == 0 {
					require.ErrorContains(t, err, "TRYAGAIN")
				} else {
					require.ErrorIs(t, err, context.DeadlineExceeded)
					require.NotErrorIs(t, err, pipeline.ErrUnsent, "it may have been executed")
				}
				require.Zero(t, pipeline.Busy(w))
				require.Zero(t, pipeline.Waiting(w))
			})
		})
	}
}
