package inflight_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/inflight"
	"github.com/weir-go/weir/window"
)

// makeCalls makes calls at a rate per second in random order, and returns how many got no slot.
func makeCalls(t *testing.T, l *inflight.Limiter, rate float64, length time.Duration, takes func(*rand.Rand) time.Duration) (refused int) {
	t.Helper()
	var count atomic.Int64
	var all sync.WaitGroup
	r := rand.New(rand.NewPCG(3, 4))
	for began := time.Now(); time.Since(began) < length; {
		time.Sleep(time.Duration(r.ExpFloat64() / rate * float64(time.Second)))
		took := takes(r)
		all.Go(func() {
			if l.Run(t.Context(), func(context.Context) error { time.Sleep(took); return nil }) != nil {
				count.Add(1)
			}
		})
	}
	all.Wait()
	return int(count.Load())
}

func twoKinds(longShare float64, short, long time.Duration) func(*rand.Rand) time.Duration {
	return func(r *rand.Rand) time.Duration {
		if r.Float64() < longShare {
			return long
		}
		return short
	}
}

func TestAdaptiveRefusesNothingIfSomeCallsAreLong(t *testing.T) {
	for name, c := range map[string]struct {
		rate  float64
		takes func(*rand.Rand) time.Duration
	}{
		"streams":         {100, twoKinds(0.03, 10*ms, 30*time.Second)},
		"cache and disk":  {1000, twoKinds(0.1, 5*ms, 200*ms)},
		"some reports":    {1000, twoKinds(0.05, 5*ms, time.Second)},
		"half of them":    {300, twoKinds(0.5, 2*ms, 500*ms)},
		"nearly all long": {100, twoKinds(0.8, 5*ms, 500*ms)},
	} {
		for kind, q := range map[string]inflight.Queue{"no queue": {}, "queue": {Target: 20 * ms}} {
			t.Run(name+"/"+kind, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					l := inflight.New(inflight.Config{Adaptive: true, Queue: q})
					require.Zero(t, makeCalls(t, l, c.rate, time.Minute, c.takes))
				})
			})
		}
	}
}

// Streams that never end come one after the other, beside calls of 10 ms.
func TestAdaptiveRefusesNothingWhileStreamsAreOpen(t *testing.T) {
	for _, streams := range []int{48, 60, 200} {
		synctest.Test(t, func(t *testing.T) {
			l := inflight.New(inflight.Config{Adaptive: true})
			makeFastCalls(l, 100)
			ctx, stop := context.WithCancel(t.Context())
			var all sync.WaitGroup
			defer all.Wait()
			defer stop()
			for range streams {
				require.Zero(t, makeCalls(t, l, 100, 200*ms, func(*rand.Rand) time.Duration { return 10 * ms }))
				slot, ok := tryAcquire(l)
				require.True(t, ok)
				all.Go(func() {
					<-ctx.Done()
					slot.Done(ctx, nil)
				})
			}
			require.Zero(t, makeCalls(t, l, 100, time.Minute, func(*rand.Rand) time.Duration { return 10 * ms }))
		})
	}
}

// Streams that were answered hold their slots. When the service hangs, the other calls are bounded
// nevertheless, and the streams stay.
func TestAdaptiveBoundsTheCallsBesideAnsweredStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const streams = 60
		l := inflight.New(inflight.Config{Adaptive: true, Name: "api"})
		slots := make([]inflight.Slot, streams)
		for i := range slots {
			makeFastCalls(l, 2)
			var ok bool
			slots[i], ok = tryAcquire(l)
			require.True(t, ok)
			time.Sleep(20 * ms)
			slots[i].Answered(t.Context())
		}
		require.Empty(t, l.Explain())
		time.Sleep(10 * time.Second)
		makeFastCalls(l, 20)
		makeHangingCalls(l, 1000, context.Context.Err)
		require.GreaterOrEqual(t, l.Limit(), streams)
		require.Less(t, l.Limit(), streams+10)
		require.Contains(t, l.Explain(), "no call succeeds")
		for i := range slots {
			slots[i].Answered(t.Context()) // does nothing
			slots[i].Done(t.Context(), nil)
			slots[i].Answered(t.Context())
		}
		require.Zero(t, l.InFlight())
		new(inflight.Slot).Answered(t.Context())
		new(inflight.Slot).Record(t.Context(), window.Success)
	})
}

// A service that can hold ten calls refuses others, and says why. The bound becomes a little less
// than what the service can hold, so that it hears the word no more.
func TestAdaptiveLearnsFromTheWordOfTheService(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := inflight.New(inflight.Config{Adaptive: true})
		makeFastCalls(l, 100)
		var inService, words atomic.Int64
		var all sync.WaitGroup
		for range 5000 {
			time.Sleep(10 * ms)
			slot, ok := tryAcquire(l)
			if !ok {
				continue
			}
			if inService.Add(1) > 10 {
				inService.Add(-1)
				words.Add(1)
				slot.Record(t.Context(), window.Overloaded)
				continue
			}
			all.Go(func() {
				time.Sleep(300 * ms)
				inService.Add(-1)
				slot.Done(t.Context(), nil)
			})
		}
		require.Contains(t, l.Explain(), "at most 9 calls in flight")
		require.Contains(t, l.Explain(), "the service says that it is overloaded")
		all.Wait()
		require.Less(t, words.Load(), int64(150), "of 3,300 without a bound")
	})
}
