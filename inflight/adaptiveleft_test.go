package inflight_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/inflight"
)

// visitors make calls at intervals, which last until the visitors leave.
type visitors struct {
	every, stay time.Duration
	made        atomic.Int64
}

func (v *visitors) visit(ctx context.Context, l *inflight.Limiter, length time.Duration) {
	var all sync.WaitGroup
	for range length / v.every {
		time.Sleep(v.every)
		all.Go(func() {
			ctx, leave := context.WithTimeout(ctx, 50*ms) // for a slot
			slot, err := l.Acquire(ctx)
			leave()
			if err != nil {
				return
			}
			v.made.Add(1)
			ctx, leave = context.WithCancel(context.Background())
			time.AfterFunc(v.stay, leave)
			<-ctx.Done()
			slot.Done(ctx, ctx.Err())
		})
		synctest.Wait()
	}
	all.Wait()
}

// forLimiters runs a test with an adaptive limit without and with a queue, after 100 calls of 20
// ms. So calls of 160 ms are slow.
func forLimiters(t *testing.T, test func(t *testing.T, l *inflight.Limiter)) {
	for name, q := range map[string]inflight.Queue{"no queue": {}, "queue": {Target: 20 * ms}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := inflight.New(inflight.Config{Adaptive: true, Queue: q})
				makeFastCalls(l, 100)
				test(t, l)
			})
		})
	}
}

func TestAdaptiveRefusesCallsToAServiceThatHangsUntilCallersLeave(t *testing.T) {
	forLimiters(t, func(t *testing.T, l *inflight.Limiter) {
		v := visitors{every: 10 * ms, stay: time.Second}
		before := l.Limit()
		v.visit(t.Context(), l, 2*time.Second)
		require.LessOrEqual(t, l.Limit(), 20, "after the first cut")
		v.visit(t.Context(), l, 3*time.Second)
		require.LessOrEqual(t, l.Limit(), 2, "each cut takes a second")
		v.made.Store(0)
		v.visit(t.Context(), l, 20*time.Second)
		require.LessOrEqual(t, v.made.Load(), int64(30), "one or two at a time")
		makeFastCalls(l, 200)
		require.Equal(t, before, l.Limit(), "the service is well, and the limit was not reached for two seconds")
	})
}

// At two calls per second, the limit falls to one call.
func TestAdaptiveNoticesFewCallsThatHangUntilCallersLeave(t *testing.T) {
	forLimiters(t, func(t *testing.T, l *inflight.Limiter) {
		(&visitors{every: 500 * ms, stay: time.Second}).visit(t.Context(), l, 20*time.Second)
		require.Equal(t, 1, l.Limit())
	})
}

func TestAdaptiveLearnsNothingFromCallersThatLeaveEarly(t *testing.T) {
	forLimiters(t, func(t *testing.T, l *inflight.Limiter) {
		v, before := visitors{every: 10 * ms, stay: 150 * ms}, l.Limit()
		v.visit(t.Context(), l, 20*time.Second)
		require.EqualValues(t, 2000, v.made.Load(), "nothing is refused")
		require.Equal(t, before, l.Limit())
	})
}

// Four of five calls are streams, which last until their callers leave. The others end well.
func TestAdaptiveLearnsNothingFromStreamsThatCallersLeave(t *testing.T) {
	forLimiters(t, func(t *testing.T, l *inflight.Limiter) {
		v, before := visitors{every: 100 * ms, stay: time.Second}, l.Limit()
		var others sync.WaitGroup
		others.Go(func() {
			for range 40 {
				time.Sleep(480 * ms)
				makeFastCalls(l, 1)
			}
		})
		v.visit(t.Context(), l, 20*time.Second)
		others.Wait()
		require.EqualValues(t, 200, v.made.Load(), "nothing is refused")
		require.Equal(t, before, l.Limit())
	})
}
