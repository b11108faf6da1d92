package recipes_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/alert"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/dev/tests/recipes"
	"github.com/weir-go/weir/weirtest"
)

// watchSLO runs the monitor for d, while a call is made after each pause, of which one in every
// fails. It returns the rules that fired, with the times from the first call.
func watchSLO(t *testing.T, d, pause time.Duration, every int) (fired map[string]time.Duration) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		gate := weir.New("checkout", weir.Config{Breaker: breaker.Config{FailureRate: breaker.Off, FailureRun: breaker.Off}})
		var service weirtest.Service
		var alerts weirtest.Alerts
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		began, monitor := time.Now(), recipes.WatchSLO(gate, &alerts)
		go func() { ended <- monitor.Run(ctx) }()
		for i := 1; time.Since(began) < d; i++ {
			if i%every == 0 {
				service.Next(1, weirtest.Answer{Err: weirtest.ErrDown})
			}
			_ = gate.Run(ctx, service.Call)
			time.Sleep(pause)
		}
		fired = map[string]time.Duration{}
		for _, a := range alerts.All() {
			if a.State == alert.Firing {
				fired[a.Rule+", "+a.Labels["severity"]] = a.StartsAt.Sub(began)
			}
		}
		stop()
		require.NoError(t, <-ended)
	})
	return fired
}

func TestWhenAnObjectivePages(t *testing.T) {
	fired := watchSLO(t, 15*time.Minute, time.Second, 10)
	require.Contains(t, fired, "checkout burn 14.4x, page")
	// 14.4 × 0.1 % of an hour's calls are spent after 518 s at 10 %.
	require.InDelta(t, 518, fired["checkout burn 14.4x, page"].Seconds(), 30)
	require.NotContains(t, fired, "checkout burn 6x, page")
}

// One failed call in an hour with 60 calls is 16.7 times too fast.
func TestAFailedCallAtNightPagesNobody(t *testing.T) {
	require.Empty(t, watchSLO(t, 3*time.Hour, time.Minute, 170))
}

func TestASlowBurnMakesATicket(t *testing.T) {
	fired := watchSLO(t, 16*time.Hour, 10*time.Second, 200)
	require.Contains(t, fired, "checkout burn 1x, ticket")
	require.Len(t, fired, 1)
}
