package numbers

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/limiter"
)

// TestMemoryOfAWaiter compares goroutines that wait for a limiter with goroutines that wait for a
// channel, so that the stacks do not count.
func TestMemoryOfAWaiter(t *testing.T) {
	const n = 2000
	waiting := func(wait func(ctx context.Context, l *limiter.TokenBucket)) (bytes int64) {
		synctest.Test(t, func(t *testing.T) {
			l := limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.Per(1, time.Minute)})
			l.Take(1)
			ctx, cancel := context.WithCancel(t.Context())
			before := heapBytes()
			for range n {
				go wait(ctx, l)
			}
			synctest.Wait()
			bytes = int64(heapBytes()-before) / n
			cancel()
		})
		return bytes
	}
	parked := func(ctx context.Context, _ *limiter.TokenBucket) { <-ctx.Done() }
	waiting(parked) // creates goroutines that the runtime reuses
	none := waiting(parked)
	plain := waiting(func(ctx context.Context, l *limiter.TokenBucket) { _ = l.Wait(ctx, 1) }) - none
	limited := waiting(func(ctx context.Context, l *limiter.TokenBucket) {
		ctx, cancel := context.WithTimeout(ctx, 1<<60)
		defer cancel()
		_ = l.Wait(ctx, 1)
	}) - none
	t.Logf("%d bytes, %d with a deadline, beside %d", plain, limited, none)
	require.LessOrEqual(t, plain, int64(320))
	require.LessOrEqual(t, limited, int64(800))
}
