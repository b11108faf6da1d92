package recipes_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/dev/tests/recipes"
)

// lookupsBesideReports makes a lookup every 10 ms for a minute, and 20 reports of 30 s, and returns
// how many lookups the gate refused.
func lookupsBesideReports(t *testing.T, lookups, reports *weir.Gate) (refused int) {
	t.Helper()
	lasting := func(d time.Duration) func(context.Context) error {
		return func(context.Context) error {
			time.Sleep(d)
			return nil
		}
	}
	var calls sync.WaitGroup
	for range 20 {
		calls.Go(func() { _ = reports.Run(t.Context(), lasting(30*time.Second)) })
	}
	for range 6000 {
		time.Sleep(10 * time.Millisecond)
		if lookups.Run(t.Context(), lasting(time.Millisecond)) != nil {
			refused++
		}
	}
	calls.Wait()
	return refused
}

func TestLongCallsDoNotRefuseShortOnes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		search := recipes.NewSearch()
		require.Zero(t, lookupsBesideReports(t, search.Lookups, search.Reports))

		slots := weir.New("search", weir.Config{MaxConcurrent: 20})
		require.Greater(t, lookupsBesideReports(t, slots, slots), 2000, "reports have all slots for half of the time")
	})
}

func TestASharedBreakerOpensOnLongCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := weir.New("search", weir.Config{Breaker: breaker.Config{SlowCall: 200 * time.Millisecond}})
		var calls sync.WaitGroup
		for range 20 {
			calls.Go(func() {
				require.NoError(t, shared.Run(t.Context(), func(context.Context) error {
					time.Sleep(30 * time.Second)
					return nil
				}))
			})
		}
		calls.Wait()
		require.True(t, shared.Tripped())
	})
}
