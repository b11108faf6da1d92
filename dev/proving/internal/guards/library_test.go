package guards_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/dev/proving/internal/guards"
	"github.com/weir-go/weir/dev/proving/internal/sim"
	"github.com/weir-go/weir/throttle"
)

// makerOf returns the row with a name.
func makerOf(t *testing.T, name string) sim.Maker {
	all := guards.All()
	i := slices.IndexFunc(all, func(m sim.Maker) bool { return m.Name == name })
	require.GreaterOrEqual(t, i, 0, name)
	return all[i]
}

// hystrix does not count an error that is context.DeadlineExceeded, unlike one that wraps it.
func TestHystrixCountsTheDeadlinesOfCallers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := makerOf(t, "hystrix-go").New(testSetting)
		for range 30 { // never ten in flight, which hystrix refuses
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			err := g.Call(ctx, hang)
			cancel()
			if _, refused := g.Refusal(err); !refused {
				require.Equal(t, context.DeadlineExceeded, err)
			}
		}
		require.Equal(t, 1, g.Openings())
		g.(interface{ Close() }).Close()
	})
}

// go-zero treats a negative time as no time. If the clock of the bubble were not moved, go-zero
// would never let a call through.
func TestGoZeroLetsACallThroughPerSecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := makerOf(t, "go-zero").New(testSetting)
		began, longest := time.Now(), time.Duration(0)
		last := began
		for time.Since(began) < 2*time.Minute {
			_ = g.Call(t.Context(), func(context.Context) error {
				longest, last = max(longest, time.Since(last)), time.Now()
				return errService
			})
			time.Sleep(10 * time.Millisecond)
		}
		require.LessOrEqual(t, longest, 1020*time.Millisecond)
	})
}

func TestARefusalSaysWhenToRetryIfTheLibraryKnows(t *testing.T) {
	for name, least := range map[string]time.Duration{
		"weir": 900 * time.Millisecond, "weir throttle": time.Second, "failsafe breaker": 50 * time.Second,
		"gobreaker": 0, "sentinel": 0,
	} {
		synctest.Test(t, func(t *testing.T) {
			g := makerOf(t, name).New(testSetting)
			var err error
			for range 100 {
				err = errors.Join(g.Call(t.Context(), fail))
				if after, refused := g.Refusal(err); refused {
					require.GreaterOrEqual(t, after, least, name)
					require.Equal(t, least > 0, after > 0, name)
					return
				}
			}
			require.Fail(t, "no call was refused", name)
		})
	}
}

// A gate with a throttle has the bound on calls in flight of its config too.
func TestAGateWithAThrottleHasItsBound(t *testing.T) {
	for _, config := range []weir.Config{{MaxConcurrent: 1}, {MaxConcurrent: 1, Adaptive: true}, {Adaptive: true, MaxWait: time.Second}} {
		g := guards.GateWithThrottle("gate", "a gate", config, throttle.Config{}).New(testSetting)
		require.NoError(t, g.Call(t.Context(), func(context.Context) error {
			err := g.Call(t.Context(), succeed)
			_, refused := g.Refusal(err)
			require.Equal(t, config.MaxConcurrent == 1, refused)
			require.Equal(t, refused, err != nil)
			return nil
		}))
	}
}
