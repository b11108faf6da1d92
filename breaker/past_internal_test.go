package breaker

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/tally"
)

// A breaker that is reconfigured between two window shapes all day keeps its totals, and only the
// tallies of the last minute.
func TestWindowsThatHaveEndedAreSummedUp(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	b := NewAt("b", Config{Latency: true}, at)
	const changes = 500
	for i := range changes {
		at = at.Add(20 * time.Second)
		permit, err := b.AllowAt(at)
		require.NoError(t, err)
		require.True(t, permit.RecordAt(at.Add(50*time.Millisecond), Success))
		require.NoError(t, b.ReconfigureAt(at.Add(time.Second), Config{Latency: i%3 != 0, Window: time.Duration(10+i%2) * time.Second}))
	}
	require.EqualValues(t, changes, b.Totals().Successes)
	timed := int64(1) // the first
	for i := range changes - 1 {
		if i%3 != 0 {
			timed++
		}
	}
	require.Equal(t, timed, b.LifetimeLatency().Count())
	require.InDelta(t, float64(timed)*0.05, b.LifetimeLatency().Sum, 1e-3)
	require.Len(t, b.regime.Load().past.recent, 3, "those of the last minute")

	straggler := b.regime.Load().past.recent[0].tally
	straggler.Record(0, tally.Ignored, 0)
	require.EqualValues(t, 1, b.Totals().Ignored)
	require.NoError(t, b.ReconfigureAt(at.Add(time.Hour), Config{Window: time.Minute}))
	require.EqualValues(t, 1, b.Totals().Ignored)
	require.EqualValues(t, changes, b.Totals().Successes)
	require.Len(t, b.regime.Load().past.recent, 1)
}
