package breaker_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/breaker"
)

func TestRateAtTheThresholdOpensAndOneBelowDoesNot(t *testing.T) {
	for _, c := range []struct {
		rate            float64
		failures, calls int
		want            breaker.State
	}{
		{0.57, 57, 100, breaker.Open},
		{0.57, 56, 100, breaker.Closed},
		{0.5, 50, 100, breaker.Open},
		{0.5, 248, 500, breaker.Closed}, // 49.6 %
		{2.0 / 3, 20, 30, breaker.Open},
		{1.0 / 3, 10, 30, breaker.Open},
		{1.0 / 3, 9, 30, breaker.Closed},
		{1, 20, 20, breaker.Open},
		{1, 99, 100, breaker.Closed},
		{1e-9, 1, 100, breaker.Open},
	} {
		b := breaker.New("b", breaker.Config{FailureRate: c.rate, MinCalls: c.calls})
		run(t, b, c.failures, fail)
		run(t, b, c.calls-c.failures, succeed)
		require.Equal(t, c.want, b.State(), "%d failures of %d at %v", c.failures, c.calls, c.rate)
	}
}

func TestNothingIsJudgedBelowMinCalls(t *testing.T) {
	b := breaker.New("b", breaker.Config{MinCalls: 10})
	run(t, b, 9, fail)
	require.Equal(t, breaker.Closed, b.State())
	run(t, b, 1, succeed)
	require.Equal(t, breaker.Open, b.State(), "a success may be the call that reaches MinCalls")
}

func TestMinCallsOneLetsTheFirstCallOpenAndFailureRateOffNone(t *testing.T) {
	b := breaker.New("b", breaker.Config{MinCalls: 1})
	run(t, b, 1, fail)
	require.Equal(t, breaker.Open, b.State())

	b = breaker.New("b", breaker.Config{FailureRate: breaker.Off})
	run(t, b, 1000, fail)
	require.Equal(t, breaker.Closed, b.State())
	require.Equal(t, int64(1000), b.Counts().Failures)
}

func TestOldFailuresLeaveTheWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := breaker.New("b", breaker.Config{FailureRun: breaker.Off})
		run(t, b, 19, fail)
		time.Sleep(10 * time.Second)
		run(t, b, 19, fail)
		require.Equal(t, breaker.Closed, b.State())
		require.Equal(t, int64(19), b.Counts().Failures)
		require.Equal(t, int64(38), b.Totals().Failures)
		run(t, b, 1, fail)
		require.Equal(t, breaker.Open, b.State())
	})
}

func TestDayOldSuccessesDoNotMaskFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := breaker.New("b", breaker.Config{})
		run(t, b, 10_000, succeed)
		time.Sleep(24 * time.Hour)
		open(t, b)
	})
}

func TestFailuresAmongManySuccessesAtABucketEdge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := breaker.New("b", breaker.Config{})
		run(t, b, 9100, succeed)
		time.Sleep(time.Second)
		run(t, b, 900, fail)
		require.Equal(t, breaker.Closed, b.State(), "9 % of 10,000 calls, not 100 % of the second's")
		require.InDelta(t, 0.09, b.Counts().FailureRate(), 1e-9)
	})
}
