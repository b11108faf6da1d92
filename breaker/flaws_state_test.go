package breaker_test

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"weak"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/internal/testenv"
)

// Callers of another breaker can see the state Open before its deadline is set.
func TestAnOpenBreakerAlwaysHasItsDeadline(t *testing.T) {
	for range 200 {
		b := breaker.New("b", breaker.Config{MinCalls: 1, Cooldown: time.Hour})
		var wg sync.WaitGroup
		var through atomic.Int64
		for range 8 {
			wg.Go(func() {
				for b.State() == breaker.Closed {
					runtime.Gosched()
				}
				if _, err := b.Allow(); err == nil {
					through.Add(1)
				}
			})
		}
		_ = b.Run(bg(), fail)
		wg.Wait()
		require.Zero(t, through.Load())
	}
}

// Another breaker opens only if a count is equal to its threshold, not if it is above.
func TestThresholdsThatWereJumpedOver(t *testing.T) {
	c := breaker.Config{FailureRate: breaker.Off, ConsecutiveFailures: 10}
	s := runScript(t, c, "0 EEEEEEEE ........ closed")
	c.ConsecutiveFailures = 5 // the count is higher already
	require.NoError(t, s.b.ReconfigureAt(s.now, c))
	s.do("0 E . open")
}

// In other breakers the counts of one reading do not fit together while the window moves on.
func TestNoTornReadingWhileTheWindowMoves(t *testing.T) {
	b := breaker.New("b", breaker.Config{FailureRate: breaker.Off, Window: time.Millisecond, Buckets: 10})
	var done atomic.Bool
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for !done.Load() {
				if c := b.Counts(); c.Successes != 0 || c.Failures < 0 || c.Slow != 0 {
					t.Errorf("every call fails, and the counts are %+v", c)
					return
				}
			}
		})
	}
	for range testenv.Repeat(200_000, 60_000) {
		_ = b.Run(bg(), fail)
	}
	done.Store(true)
	wg.Wait()
}

// Other breakers leave goroutines and timers behind.
func TestNoGoroutineOrTimerRemains(t *testing.T) {
	before := runtime.NumGoroutine()
	kept := make([]weak.Pointer[breaker.Breaker], testenv.Repeat(100_000, 5_000))
	for i := range kept {
		b := breaker.New("b", breaker.Config{MinCalls: 1})
		_ = b.Run(bg(), fail)
		kept[i] = weak.Make(b)
	}
	runtime.GC()
	for _, b := range kept {
		require.Nil(t, b.Value(), "a goroutine or a timer still has the breaker")
	}
	require.LessOrEqual(t, runtime.NumGoroutine(), before+1)
}

// In another breaker zero cannot be configured. Here Off and thresholds of 1 can.
func TestZeroAndOffAreDifferent(t *testing.T) {
	runScript(t, breaker.Config{Recovery: breaker.Off, MinCalls: 1, FailureRate: 1, Cooldown: breaker.Off, Probes: 1}, "0 E . half_open", "0 E . half_open", "0 S . closed")
	runScript(t, breaker.Config{Recovery: breaker.Off, MinCalls: 1, FailureRate: breaker.Off, ConsecutiveFailures: 1}, "0 E . open")
}
