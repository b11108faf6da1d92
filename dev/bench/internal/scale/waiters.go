package scale

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/dev/bench/internal/fit"
	"github.com/weir-go/weir/dev/bench/internal/measure"
	"github.com/weir-go/weir/limiter"
)

// waiters varies the number of callers that wait for a limiter.
func (t timer) waiters() Experiment {
	return Experiment{
		File: "waiters", Title: "A queue of n callers", X: "waiters", Y: "ns per waiter", Sizes: powersOfTen(1, 100_000),
		Lines: []Line{
			{Name: "join and be served", Says: fit.Constant, Cost: t.queue(serveWaiters)},
			{Name: "join and give up", Says: fit.Constant, Cost: t.queue(giveUp)},
			{Name: "n goroutines on a channel", Says: fit.Constant, Cost: t.channel},
		},
		Why: "The queue is a linked list. Joining it, being served and leaving it from the middle cost the same at any length. " +
			"The last line is the floor: goroutines that wait for a channel each. Most of the cost is starting and waking a goroutine.",
	}
}

// endWaits ends the wait of all callers.
type endWaits func(taken *limiter.Reservation, cancel context.CancelFunc, size int)

func serveWaiters(taken *limiter.Reservation, _ context.CancelFunc, size int) { taken.Refund(size) }

func giveUp(_ *limiter.Reservation, cancel context.CancelFunc, _ int) { cancel() }

// queue returns a function that measures the cost per waiter of a queue with size waiters.
func (t timer) queue(end endWaits) func(size int) (float64, error) {
	return func(size int) (float64, error) {
		return t.medianPerWaiter(size, func() error { return wait(size, end) })
	}
}

// wait starts size waiting callers, and then ends all their waits.
func wait(size int, end endWaits) error {
	b := limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.Per(1, time.Duration(1<<40)), Burst: size})
	taken := limiter.Reserve(b, size)
	named := limiter.NewJoint("bench", b)
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
	end(taken, cancel, size)
	all.Wait()
	if n := served.Load(); n != 0 && n != int64(size) {
		return fmt.Errorf("%d of %d waiters were served", n, size)
	}
	return nil
}

// channel measures the same with a channel per goroutine instead of a limiter.
func (t timer) channel(size int) (float64, error) {
	return t.medianPerWaiter(size, func() error {
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

// medianPerWaiter runs try for about t.each and returns the median time divided by size.
func (t timer) medianPerWaiter(size int, try func() error) (float64, error) {
	var costs []float64
	for end := time.Now().Add(t.each); len(costs) < turnsPerPoint || time.Now().Before(end); {
		began := time.Now()
		if err := try(); err != nil {
			return 0, err
		}
		costs = append(costs, float64(time.Since(began))/float64(size))
	}
	return measure.SpreadOf(costs).Median, nil
}
