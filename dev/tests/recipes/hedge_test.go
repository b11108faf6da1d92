package recipes_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/dev/tests/recipes"
	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/weirtest"
)

const hedgeDelay = 100 * time.Millisecond

// hedged returns a function that makes calls with up to n hedges at once.
func hedged(t *testing.T, gate *weir.Gate, n int) func(func(context.Context) error) error {
	t.Helper()
	hedges := limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerMinute(1), Burst: n})
	h := recipes.Hedger{Gate: gate, Hedges: hedges, Delay: hedgeDelay}
	return func(fn func(context.Context) error) error { return h.Run(t.Context(), fn) }
}

func TestAHedgeReplacesASlowCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var service weirtest.Service
		gate := weir.New("users", weir.Config{Breaker: breaker.Config{MinCalls: 1, FailureRate: 0.01}})
		service.Next(1, weirtest.Answer{Hang: true})
		start := time.Now()
		require.NoError(t, hedged(t, gate, 1)(service.Call))
		require.Equal(t, hedgeDelay, time.Since(start))
		synctest.Wait()
		totals := gate.Totals()
		require.Equal(t, [3]int64{1, 0, 1}, [3]int64{totals.Successes, totals.Failures, totals.Ignored}, "the slow call is cancelled and ignored")
	})
}

func TestAQuickCallHasNoHedge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var service weirtest.Service
		gate := weir.New("users", weir.Config{})
		service.Next(1, weirtest.Answer{Err: weirtest.ErrDown})
		require.ErrorIs(t, hedged(t, gate, 1)(service.Call), weirtest.ErrDown)
		require.Equal(t, 1, service.Calls(), "a hedge is no retry")
	})
}

func TestAFailedHedgeDoesNotReplaceTheFirstCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var service weirtest.Service
		gate := weir.New("users", weir.Config{})
		service.Next(1, weirtest.Answer{After: time.Second})
		service.Next(1, weirtest.Answer{Err: weirtest.ErrDown})
		start := time.Now()
		require.NoError(t, hedged(t, gate, 1)(service.Call))
		require.Equal(t, time.Second, time.Since(start))

		service.Next(1, weirtest.Answer{After: time.Second})
		time.AfterFunc(hedgeDelay/2, func() { gate.Breaker().OpenFor(time.Hour) })
		require.NoError(t, hedged(t, gate, 1)(service.Call), "the gate refuses the hedge")
		require.Equal(t, 3, service.Calls())
	})
}

func TestHedgesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var service weirtest.Service
		call := hedged(t, weir.New("users", weir.Config{}), 3)
		service.Always(weirtest.Answer{After: time.Second})
		for range 20 {
			require.NoError(t, call(service.Call))
			synctest.Wait()
		}
		require.Equal(t, 20+3, service.Calls())
	})
}
