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
	"github.com/weir-go/weir/weirtest"
)

const hedgeDelay = 100 * time.Millisecond

// hedgedGate returns a gate that allows n hedges at once.
func hedgedGate(n int) *weir.Gate {
	return weir.New("users", weir.Config{RetryShare: 0.001, RetryBurst: n, Breaker: breaker.Config{MinCalls: 1, FailureRate: 0.01}})
}

type hedgedCall = func(*weir.Gate, func(context.Context) error) error

// hedgers make a call to the service with a hedge.
var hedgers = map[string]func(*testing.T, *weir.Gate, func(context.Context) error) error{
	"own": func(t *testing.T, gate *weir.Gate, fn func(context.Context) error) error {
		t.Helper()
		h := recipes.Hedger{Gate: gate, Delay: hedgeDelay}
		return h.Run(t.Context(), fn)
	},
	"failsafe-go": func(t *testing.T, gate *weir.Gate, fn func(context.Context) error) error {
		t.Helper()
		_, err := recipes.FailsafeHedge(t.Context(), gate, hedgeDelay, returning(fn))
		return err
	},
}

// eachHedger runs a test with each of the hedgers.
func eachHedger(t *testing.T, test func(*testing.T, hedgedCall)) {
	t.Helper()
	for name, call := range hedgers {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				test(t, func(gate *weir.Gate, fn func(context.Context) error) error { return call(t, gate, fn) })
			})
		})
	}
}

func TestAHedgeReplacesASlowCall(t *testing.T) {
	eachHedger(t, func(t *testing.T, call hedgedCall) {
		var service weirtest.Service
		gate := hedgedGate(1)
		service.Next(1, weirtest.Answer{Hang: true})
		start := time.Now()
		require.NoError(t, call(gate, service.Call))
		require.Equal(t, hedgeDelay, time.Since(start))
		synctest.Wait()
		totals := gate.Totals()
		require.Equal(t, [3]int64{1, 0, 1}, [3]int64{totals.Successes, totals.Failures, totals.Ignored}, "the slow call is cancelled and ignored")
	})
}

func TestAQuickCallHasNoHedge(t *testing.T) {
	eachHedger(t, func(t *testing.T, call hedgedCall) {
		var service weirtest.Service
		service.Next(1, weirtest.Answer{Err: weirtest.ErrDown})
		require.ErrorIs(t, call(hedgedGate(1), service.Call), weirtest.ErrDown)
		require.Equal(t, 1, service.Calls(), "a hedge is no retry")
	})
}

func TestAHedgeThatTheGateRefusesDoesNotEndTheFirstCall(t *testing.T) {
	eachHedger(t, func(t *testing.T, call hedgedCall) {
		var service weirtest.Service
		gate := hedgedGate(1)
		require.NoError(t, gate.Run(weir.WithAttempt(t.Context(), 1), service.Call))
		for _, want := range []error{nil, weirtest.ErrDown} {
			service.Next(1, weirtest.Answer{After: time.Second, Err: want})
			start := time.Now()
			require.ErrorIs(t, call(gate, service.Call), want)
			require.Equal(t, time.Second, time.Since(start))
		}
		require.Equal(t, 3, service.Calls())
		require.EqualValues(t, 2, gate.Retries().Totals().Refused)
	})
}

func TestHedgesAreBounded(t *testing.T) {
	eachHedger(t, func(t *testing.T, call hedgedCall) {
		var service weirtest.Service
		service.Always(weirtest.Answer{After: time.Second})
		gate := hedgedGate(3)
		for range 20 {
			require.NoError(t, call(gate, service.Call))
			synctest.Wait()
		}
		require.Equal(t, 20+3, service.Calls())
	})
}

func TestAFailedHedgeDoesNotReplaceTheFirstCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var service weirtest.Service
		service.Next(1, weirtest.Answer{After: time.Second})
		service.Next(1, weirtest.Answer{Err: weirtest.ErrDown})
		gate := weir.New("users", weir.Config{})
		start := time.Now()
		require.NoError(t, hedgers["own"](t, gate, service.Call))
		require.Equal(t, time.Second, time.Since(start))

		service.Next(1, weirtest.Answer{After: time.Second})
		time.AfterFunc(hedgeDelay/2, func() { gate.Breaker().OpenFor(time.Hour) })
		require.NoError(t, hedgers["own"](t, gate, service.Call), "the gate refuses the hedge")
		require.Equal(t, 3, service.Calls())

		service.Next(1, weirtest.Answer{After: time.Second})
		service.Next(1, weirtest.Answer{Err: weirtest.ErrDown})
		gate = weir.New("users", weir.Config{})
		require.ErrorIs(t, hedgers["failsafe-go"](t, gate, service.Call), weirtest.ErrDown, "there it does")
	})
}
