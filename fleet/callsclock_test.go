package fleet_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/window"
)

// A Calls is a package variable that is used with the real clock, and then in one bubble after the
// other. In each clock its window begins without the calls of the clock before, of this node and of
// others, and new calls count for the length of the window. No total falls.
func TestCallsStartAgainWithEachClock(t *testing.T) {
	l := connect(t)
	c, other := newCalls(l, nameOfTest(t), fastFlushes), newCalls(l, nameOfTest(t), fastFlushes)
	var total int64
	fail := func(n int) {
		for range n {
			c.Record(window.Failure, 0)
		}
		total += int64(n)
	}
	requireTotal := func(t *testing.T) {
		t.Helper()
		require.Equal(t, total, c.Totals().Failures)
		require.GreaterOrEqual(t, c.Lag(), time.Duration(0))
		require.Less(t, c.Lag(), time.Hour)
	}
	withRun := func(ctx context.Context, r recorder, use func()) {
		ctx, cancel := context.WithCancel(ctx)
		var running sync.WaitGroup
		running.Go(func() { _ = r.Run(ctx) })
		use()
		cancel()
		running.Wait()
	}
	withRun(t.Context(), c, func() {
		requireSoon(t, func() bool { return c.Flushes() > 0 })
		withRun(t.Context(), other, func() { other.Record(window.Failure, 0) })
		total++
		fail(5)
		c.Forget()
		fail(7)
		requireSoon(t, func() bool { return c.Totals().Failures == total })
	})
	fail(2) // after Run
	l.Breaker().Force(breaker.ForcedOpen, "")
	for range 2 {
		synctest.Test(t, func(t *testing.T) {
			require.Zero(t, c.Counts().Failures)
			requireTotal(t)
			fail(1)
			require.Equal(t, int64(1), c.Counts().Failures)
			withRun(t.Context(), c, func() {
				time.Sleep(fastFlushes.Span / 2)
				require.Equal(t, int64(1), c.Counts().Failures)
				fail(3)
				time.Sleep(fastFlushes.Span - 2*time.Second)
				require.Equal(t, int64(3), c.Counts().Failures)
				time.Sleep(2*time.Second + 2*fastFlushes.Interval)
				require.Zero(t, c.Counts().Failures)
				c.Forget()
				// calls of the present bucket are forgotten too
				time.Sleep(fastFlushes.Span/10 + fastFlushes.Interval)
				fail(4)
				time.Sleep(time.Second)
				require.Equal(t, int64(4), c.Counts().Failures)
			})
			requireTotal(t)
		})
	}
	l.Breaker().Release()
	withRun(t.Context(), c, func() {
		requireSoon(t, func() bool { return c.Err() == nil })
		fail(1)
		withRun(t.Context(), other, func() { other.Record(window.Failure, 0) })
		total++
		requireSoon(t, func() bool { return c.Totals().Failures == total })
		requireTotal(t)
	})
}
