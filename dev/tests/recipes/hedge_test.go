package recipes_test

import (
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

// hedges returns a limiter that allows n hedges at once.
func hedges(n int) limiter.Limiter {
	return limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerMinute(1), Burst: n})
}

func TestAHedgeReplacesASlowCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var service weirtest.Service
		gate := weir.New("users", weir.Config{Breaker: breaker.Config{MinCalls: 1, FailureRate: 0.01}})
		service.Next(1, weirtest.Answer{Hang: true})
		start := time.Now()
		require.NoError(t, recipes.Hedge(t.Context(), gate, hedges(1), hedgeDelay, service.Call))
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
		require.ErrorIs(t, recipes.Hedge(t.Context(), gate, hedges(1), hedgeDelay, service.Call), weirtest.ErrDown)
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
		require.NoError(t, recipes.Hedge(t.Context(), gate, hedges(1), hedgeDelay, service.Call))
		require.Equal(t, time.Second, time.Since(start))

		service.Next(1, weirtest.Answer{After: time.Second})
		time.AfterFunc(hedgeDelay/2, func() { gate.Breaker().OpenFor(time.Hour) })
		require.NoError(t, recipes.Hedge(t.Context(), gate, hedges(1), hedgeDelay, service.Call), "the gate refuses the hedge")
		require.Equal(t, 3, service.Calls())
	})
}

func TestHedgesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var service weirtest.Service
		gate, few := weir.New("users", weir.Config{}), hedges(3)
		service.Always(weirtest.Answer{After: time.Second})
		for range 20 {
			require.NoError(t, recipes.Hedge(t.Context(), gate, few, hedgeDelay, service.Call))
			synctest.Wait()
		}
		require.Equal(t, 20+3, service.Calls())
	})
}
