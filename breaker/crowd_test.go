package breaker_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/breaker"
)

// hammer makes so many calls from each of four goroutines, which is when counts are spread.
func hammer(each int, call func()) {
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range each {
				call()
			}
		})
	}
	all.Wait()
}

func TestWhatACrowdCallsIsJudgedToTheCall(t *testing.T) {
	const each, rate = 100_000, 0.001
	b := breaker.New("crowded", breaker.Config{Window: time.Hour, Buckets: 1, FailureRate: rate})
	hammer(each, func() { _ = b.Run(bg(), func(context.Context) error { return nil }) })
	failures := int64(0)
	for !b.IsOpen() {
		_ = b.Run(bg(), func(context.Context) error { return errDown })
		failures++
	}
	want := int64(401) // 400 of 400,400 are less than one in a thousand
	require.Equal(t, want, failures)
	require.EqualValues(t, 4*each, b.Totals().Successes)
	require.Equal(t, want, b.Totals().Failures)
	require.EqualValues(t, 4*each, b.Counts().Successes)
}

func TestWhatACrowdIsRefusedIsCountedToTheCall(t *testing.T) {
	const each = 100_000
	b := breaker.New("crowded", breaker.Config{Initial: breaker.Open, Cooldown: time.Hour})
	hammer(each, func() {
		_ = b.Run(bg(), func(context.Context) error { panic("called") })
		_, _ = breaker.Do(bg(), b, func(context.Context) (int, error) { panic("called") })
		_, _ = b.Allow()
	})
	require.EqualValues(t, 4*3*each, b.Totals().Refused)
	require.EqualValues(t, 4*3*each, b.Counts().Refused)
	b.Reset()
	require.Zero(t, b.Counts().Refused, "since the state began")
	require.EqualValues(t, 4*3*each, b.Totals().Refused)
}
