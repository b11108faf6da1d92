package weirgrpc_test

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/weirgrpc"
)

// Calls queue, and the first response asks to wait for a minute. No call is sent in that minute,
// and none waits longer than MaxWait.
func TestQueuedCallsKeepToMaxWaitDuringAHold(t *testing.T) {
	for method, ask := range methodCalls {
		synctest.Test(t, func(t *testing.T) {
			served := 0
			gate := weir.New("shop", weir.Config{Rate: limiter.PerSecond(10), Burst: 1, MaxWait: time.Second})
			cc := serve(t, inMemory(), busyShop(time.Minute, &served), nil, newClient(weirgrpc.ForAll(gate)))
			var took [8]time.Duration
			var wg sync.WaitGroup
			for i := range took {
				wg.Go(func() {
					began := time.Now()
					_ = ask(t.Context(), cc)
					took[i] = time.Since(began)
				})
			}
			wg.Wait()
			for _, d := range took {
				require.LessOrEqual(t, d, time.Second, method)
			}
			require.Equal(t, 1, served, method)
		})
	}
}
