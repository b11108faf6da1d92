package weir_test

import (
	"context"
	"runtime"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/limiter"
)

func TestEndedWaitsAreNotReferenced(t *testing.T) {
	type key struct{}
	synctest.Test(t, func(t *testing.T) {
		g := weir.New("g", weir.Config{Rate: limiter.PerSecond(10), Burst: 1, MaxWait: 150 * time.Millisecond})
		waiters := make([]weak.Pointer[[64]byte], 100)
		for i := range waiters {
			waiter := new([64]byte)
			ctx := context.WithValue(t.Context(), key{}, waiter)
			require.NoError(t, g.Run(ctx, func(context.Context) error { return nil }))
			waiters[i] = weak.Make(waiter)
		}
		synctest.Wait()
		runtime.GC()
		for _, w := range waiters {
			require.Nil(t, w.Value(), "the context of an ended call is not referenced")
		}
		runtime.KeepAlive(g)
	})
}
