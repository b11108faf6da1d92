package breaker_test

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/window"
)

// In other breakers callbacks are called under a lock or out of order, or can crash the process.
func TestScenarioA40_CallbacksMayDoAnything(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b *breaker.Breaker
		var seen []breaker.State
		b = breaker.New("b", breaker.Config{Cooldown: breaker.Off, Probes: 1, FailureRun: breaker.Off, Recovery: breaker.Off, OnChange: func(c breaker.Change) {
			seen = append(seen, c.To)
			_, _, _, _ = b.State(), b.Counts(), b.Totals(), b.StatsNow()
			for range b.Observe {
			}
			switch len(seen) {
			case 1:
				_ = b.Check()
				_ = b.Run(bg(), succeed) // half-open and closed again, from within
			case 4:
				panic("callback")
			case 5:
				runtime.Goexit()
			}
		}})
		open2 := func() {
			for range 20 {
				_ = b.Run(bg(), fail)
			}
		}
		open2()
		require.Equal(t, []breaker.State{breaker.Open, breaker.HalfOpen, breaker.Closed}, seen, "delivered in order, after the callback that caused them")

		open2() // panics in the callback: the caller sees nothing of it
		require.Len(t, seen, 4)
		require.Equal(t, int64(1), b.StatsNow().Dropped)

		var wg sync.WaitGroup
		// two changes; the callback of the first ends the goroutine
		wg.Go(func() { _ = b.Run(bg(), succeed) })
		wg.Wait()
		require.Equal(t, breaker.HalfOpen, seen[4])
		time.Sleep(10 * time.Second) // ProbeTimeout releases the slot of the probe
		require.NoError(t, b.Run(bg(), succeed))
		require.Equal(t, breaker.Closed, b.State())
		require.Equal(t, breaker.Closed, seen[len(seen)-1])
	})
}

// A callback that blocks delays only the caller that runs it. The queue is bounded, dropped changes
// are counted, and queued changes are delivered however the callback ends.
func TestABlockedCallbackBlocksNoOtherCaller(t *testing.T) {
	for name, c := range map[string]struct {
		end     func()
		dropped int64
	}{
		"returns":            {func() {}, 0},
		"panics":             {func() { panic("callback") }, 1},
		"ends its goroutine": {runtime.Goexit, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				release := make(chan struct{})
				var seqs []uint64
				b := breaker.New("b", breaker.Config{Recovery: breaker.Off, MinCalls: 1, Cooldown: breaker.Off, Probes: 1, OnChange: func(change breaker.Change) {
					seqs = append(seqs, change.Seq())
					if change.Seq() == 1 {
						<-release
						c.end()
					}
				}})
				go func() { _ = b.Run(bg(), fail) }()
				synctest.Wait()
				for range 60 { // three changes each
					require.NoError(t, b.Run(bg(), succeed))
					require.ErrorIs(t, b.Run(bg(), fail), errDown)
				}
				close(release)
				synctest.Wait()
				require.Len(t, seqs, 1+64)
				for i, seq := range seqs {
					require.Equal(t, uint64(i+1), seq, "in order")
				}
				require.Equal(t, 60*3-64+c.dropped, b.StatsNow().Dropped)
			})
		})
	}
}

// In other breakers functions like Classify and Trip are called, and panic, under a lock.
func TestARuleThatPanicsLosesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		panics := true
		b := breaker.New("b", breaker.Config{FailureRun: breaker.Off, Trip: func(window.Counts) (string, bool) {
			if panics {
				panic("trip")
			}
			return "", false
		}})
		require.PanicsWithValue(t, "trip", func() { _ = b.Run(bg(), fail) })
		require.PanicsWithValue(t, "trip", func() { _, _ = breaker.Do(bg(), b, func(context.Context) (int, error) { return 1, nil }) })
		p, err := b.Allow()
		require.NoError(t, err)
		require.PanicsWithValue(t, "trip", func() { p.Record(breaker.Failure) })
		require.False(t, p.Record(breaker.Failure))
		panics = false
		require.Equal(t, window.Counts{Successes: 1, Failures: 2, ConsecutiveFailures: 1}, b.Counts(), "the results stand")
		run(t, b, 17, fail)
		require.Equal(t, breaker.Open, b.State())
	})
}

// In another library a shared breaker holds the lock of its store for a whole call. SharedCounts is
// called outside all locks: if it blocks, only its caller waits.
func TestBlockedSharedCountsBlockNoOtherCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int64
		store := make(chan struct{})
		b := breaker.New("b", breaker.Config{FailureRun: breaker.Off, SharedCounts: func() window.Counts {
			if asked.Add(1) == 1 {
				<-store
			}
			return window.Counts{}
		}})
		go func() { _ = b.Run(bg(), succeed) }()
		synctest.Wait()
		run(t, b, 19, fail)
		require.Equal(t, breaker.Open, b.State(), "it even opens meanwhile, on its own evidence")
		require.Equal(t, int64(1), b.Totals().Successes, "the call's own result has been booked")
		close(store)
	})
}
