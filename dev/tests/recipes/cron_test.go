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

func TestAJobWaitsForTokensAndEndsWhenItsServiceIsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate, items := recipes.NewExports(), make([]string, 500)
		var service weirtest.Service
		send := func(ctx context.Context, _ string) error { return service.Call(ctx) }
		// run makes a run of the job five minutes after the one before.
		run := func(wantCalls, wantLeft int) {
			t.Helper()
			time.Sleep(5 * time.Minute)
			began, before := time.Now(), service.Calls()
			left, err := recipes.Export(t.Context(), gate, items, send)
			require.Equal(t, wantCalls, service.Calls()-before)
			require.Len(t, left, wantLeft)
			if wantLeft > 0 {
				require.ErrorIs(t, err, breaker.ErrOpen)
				return
			}
			require.NoError(t, err)
			require.InDelta(t, 10, time.Since(began).Seconds(), 0.1, "500 items at 50 per second")
		}
		run(500, 0)
		service.Always(weirtest.Answer{Err: weirtest.ErrDown})
		run(3, 500)
		run(1, 500) // the probe
		service.Always(weirtest.Answer{})
		run(500, 0)
	})
}

// With Recovery, a gate refuses a share of the calls of the first run after an outage.
func TestAJobWhoseGateRecoversSlowlyEndsEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := weir.New("exports", weir.Config{})
		gate.Breaker().OpenFor(time.Second)
		time.Sleep(5 * time.Minute)
		left, err := recipes.Export(t.Context(), gate, make([]string, 500), func(context.Context, string) error { return nil })
		require.ErrorIs(t, err, breaker.ErrOpen)
		require.NotEmpty(t, left)
	})
}

func TestAJobLeavesAnItemThatFailsForTheNextRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		items := []string{"a", "bad", "c"}
		left, err := recipes.Export(t.Context(), recipes.NewExports(), items, func(_ context.Context, item string) error {
			if item == "bad" {
				return weirtest.ErrDown
			}
			return nil
		})
		require.NoError(t, err)
		require.Equal(t, []string{"bad"}, left)
	})
}

// A run of the job with one call a run shows what a breaker does for rare calls.
func TestTheDefaultBreakerOpensAfterTenRunsOfAJob(t *testing.T) {
	for want, c := range map[int]breaker.Config{10: {}, 3: {ConsecutiveFailures: 3}} {
		synctest.Test(t, func(t *testing.T) {
			gate := weir.New("job", weir.Config{Breaker: c})
			runs := 0
			for ; !gate.Tripped(); runs++ {
				_ = gate.Run(t.Context(), func(context.Context) error { return weirtest.ErrDown })
				time.Sleep(time.Hour)
			}
			require.Equal(t, want, runs)
		})
	}
}
