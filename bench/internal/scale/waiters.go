package scale

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/bench/internal/fit"
	"github.com/weir-go/weir/bench/internal/measure"
	"github.com/weir-go/weir/limiter"
)

// waiters grows the number of callers that wait for a limiter.
func (t timer) waiters() Experiment {
	return Experiment{
		File: "waiters", Title: "A queue of n callers", X: "waiters", Y: "ns a waiter", Sizes: decades(1, 100_000),
		Lines: []Line{
			{Name: "queue up and be served", Says: fit.Constant, Cost: t.queue(serve)},
			{Name: "queue up and give up", Says: fit.Constant, Cost: t.queue(giveUp)},
			{Name: "n goroutines on a channel", Says: fit.Constant, Cost: t.channel},
		},
		Why: "The queue is a linked list: to join it, to be served and to leave it from the middle cost the same however long it is. " +
			"The last line is the floor, goroutines that wait for a channel of their own; most of the cost is to start and to wake a goroutine.",
	}
}

// end lets all who wait go.
type end func(b *limiter.TokenBucket, cancel context.CancelFunc, size int)

func serve(b *limiter.TokenBucket, _ context.CancelFunc, size int) { b.Refund(size) }

func giveUp(_ *limiter.TokenBucket, cancel context.CancelFunc, _ int) { cancel() }

// queue is what a waiter costs from its start to its end, of a queue of so many.
func (t timer) queue(by end) func(size int) (float64, error) {
	return func(size int) (float64, error) { return t.often(size, func() error { return wait(size, by) }) }
}

// wait makes so many callers wait, and then lets all of them go.
func wait(size int, by end) error {
	b := limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.Every(time.Duration(1 << 40)), Burst: size})
	b.Take(size)
	named := limiter.NewNamed("bench", b, limiter.NamedConfig{})
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var all sync.WaitGroup
	var served atomic.Int64
	for range size {
		all.Go(func() {
			if named.Wait(ctx, 1) == nil {
				served.Add(1)
			}
		})
	}
	for named.Stats().Waiting < int64(size) {
		runtime.Gosched()
	}
	by(b, cancel, size)
	all.Wait()
	if n := served.Load(); n != 0 && n != int64(size) {
		return fmt.Errorf("%d of %d were served", n, size)
	}
	return nil
}

// channel is the same without a limiter.
func (t timer) channel(size int) (float64, error) {
	return t.often(size, func() error {
		var all sync.WaitGroup
		gates := make([]chan struct{}, size)
		for i := range gates {
			gates[i] = make(chan struct{}, 1)
			all.Go(func() { <-gates[i] })
		}
		for _, gate := range gates {
			gate <- struct{}{}
		}
		all.Wait()
		return nil
	})
}

// often is the median time of a try by its size, of as many tries as there is time for.
func (t timer) often(size int, try func() error) (float64, error) {
	var costs []float64
	for end := time.Now().Add(t.each); len(costs) < parts || time.Now().Before(end); {
		began := time.Now()
		if err := try(); err != nil {
			return 0, err
		}
		costs = append(costs, float64(time.Since(began))/float64(size))
	}
	return measure.SpreadOf(costs).Median, nil
}
