package limiter_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/limiter/guava"
	"github.com/weir-go/weir/stat"
)

// A refusal because the queue is full says how long the queue may be, and a metric counts it.
func TestAFullQueueSaysItsBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, leave := context.WithCancel(t.Context())
		window := limiter.WindowConfig{Limit: 1, Window: time.Hour, MaxWaiters: 2, Name: "l"}
		hourly := limiter.Per(1, time.Hour)
		for name, c := range map[string]struct {
			limiter waitingLimiter
			want    string
		}{
			"bucket": {limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: hourly, MaxWaiters: 2, Name: "l"}), "limiter l: queue is full: MaxWaiters is 2 (limit 1), retry in 3h0m0s"},
			"window": {limiter.NewFixedWindow(window), "limiter l: queue is full: MaxWaiters is 2 (limit 1), retry in 3h0m0s"},
			"log":    {limiter.NewSlidingLog(window), "limiter l: queue is full: MaxWaiters is 2 (limit 1), retry in 3h0m0s"},
			"leaky":  {limiter.NewLeakyBucket(limiter.LeakyBucketConfig{Rate: hourly, Capacity: 2, Name: "l"}), "limiter l: queue is full: Capacity is 2 (limit 2), retry in 3h0m0s"},
			"key": {
				limiter.NewGroup(limiter.GroupConfig[string]{Rate: hourly, MaxWaiters: 2, Name: "l"}).Get("k"),
				"limiter l: queue is full: MaxWaiters is 2 (limit 1), retry in 3h0m0s",
			},
			"pacer": {guava.NewSmoothBursty(guava.SmoothBurstyConfig{Rate: hourly, MaxWaiters: 2}), "limiter: queue is full: MaxWaiters is 2, retry in 3h0m0s"},
		} {
			require.True(t, c.limiter.Take(1).OK, name)
			callers := newCallers(t, c.limiter)
			callers.start(ctx, "a", 1)
			callers.start(ctx, "b", 1)
			require.EqualError(t, c.limiter.Wait(ctx, 1), c.want, name)
			requireQueueFull(t, c.limiter.Wait(ctx, 1), name)
			if source, ok := c.limiter.(stat.Source); ok {
				require.Equal(t, 2.0, queueFull(source), name)
			}
		}
		leave()
	})
}

func queueFull(s stat.Source) (requests float64) {
	for series, value := range s.Observe {
		if series.Instrument.Name == "weir.limiter.queue_full" {
			requests = value
		}
	}
	return requests
}
