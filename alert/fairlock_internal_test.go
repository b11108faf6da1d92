package alert

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// Callers of a lock get it in the order in which they came, except those whose contexts end.
func TestAFairLockGoesToItsCallersInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l fairLock
		require.NoError(t, l.lock(t.Context()))
		var order []int
		for i := range 6 {
			ctx, cancel := context.WithCancel(t.Context())
			if i%2 == 1 {
				time.AfterFunc(time.Minute, cancel)
			}
			go func() {
				defer cancel()
				if l.lock(ctx) != nil {
					return
				}
				defer l.unlock()
				order = append(order, i)
			}()
			synctest.Wait()
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		l.unlock()
		synctest.Wait()
		require.Equal(t, []int{0, 2, 4}, order)
		require.NoError(t, l.lock(t.Context()), "it is unlocked")
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		require.ErrorIs(t, l.lock(ctx), context.Canceled)
	})
}
