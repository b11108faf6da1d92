package breaker_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/window"
)

// A call whose beginning was not recorded has no duration.
func TestACallInFlightIsNotTimedWhenTimingBegins(t *testing.T) {
	b := breaker.NewAt("b", breaker.Config{}, t0)
	early := requireAllowed(t, b, 0)
	require.NoError(t, b.ReconfigureAt(modelTimeAt(1), breaker.Config{SlowCall: ms, Latency: true}))
	timed := requireAllowed(t, b, 1)
	require.True(t, early.RecordAt(modelTimeAt(10_000), breaker.Success))
	require.True(t, timed.RecordAt(modelTimeAt(10_000), breaker.Success))
	require.Equal(t, window.Totals{Successes: 2, Slow: 1}, b.Totals())
	l := b.LifetimeLatency()
	require.Equal(t, int64(1), l.Count(), "of two calls one was timed")
	require.InDelta(t, 9.999, l.Sum, 1e-6)
}
