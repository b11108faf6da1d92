package breaker

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// callConcurrently makes the given number of calls from several goroutines.
func callConcurrently(calls int64, call func()) {
	const callers = 4
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			for range calls / callers {
				call()
			}
		})
	}
	all.Wait()
}

func TestStripedBreakerOpensAtTheExactCall(t *testing.T) {
	const calls = 100_000
	b := New("striped", Config{Window: time.Hour, Buckets: 1, FailureRate: 0.001})
	call := func() { _ = b.Run(t.Context(), func(context.Context) error { return nil }) }
	callConcurrently(calls/2, call)
	b.regime.Load().tally.Stripe()
	callConcurrently(calls/2, call)
	failures := int64(0)
	for !b.Tripped() {
		_ = b.Run(t.Context(), func(context.Context) error { return errors.New("down") })
		failures++
	}
	require.EqualValues(t, calls/999+1, failures, "the fewest of which 999 times as many are more than the successes")
	require.EqualValues(t, calls, b.Totals().Successes)
	require.Equal(t, failures, b.Totals().Failures)
	require.EqualValues(t, calls, b.Counts().Successes)
}

func TestStripedRefusalsAreCountedExactly(t *testing.T) {
	const calls = 50_000
	b := New("striped", Config{})
	b.OpenFor(time.Hour)
	call := func() {
		_ = b.Run(t.Context(), func(context.Context) error { panic("called") })
		_, _ = Do(t.Context(), b, func(context.Context) (int, error) { panic("called") })
		_, _ = b.Allow()
	}
	callConcurrently(calls, call)
	b.refused.Stripe()
	callConcurrently(calls, call)
	require.EqualValues(t, 6*calls, b.Totals().Refused)
	require.EqualValues(t, 6*calls, b.Counts().Refused)
	b.Reset()
	require.Zero(t, b.Counts().Refused, "since the state began")
	require.EqualValues(t, 6*calls, b.Totals().Refused)
}

func TestStripedBreakerAllocatesNothing(t *testing.T) {
	closed, open := New("closed", Config{}), New("open", Config{})
	open.OpenFor(time.Hour)
	closed.regime.Load().tally.Stripe()
	open.refused.Stripe()
	for _, b := range []*Breaker{closed, open} {
		require.Zero(t, testing.AllocsPerRun(1000, func() {
			_ = b.Run(t.Context(), func(context.Context) error { return nil })
		}), b.Name())
	}
}
