package breaker

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheDefaultOfMaxSeries(t *testing.T) {
	for most, want := range map[int]int{0: 100, 10_000: 100, 200: 100, 199: 99, 10: 5, 1: 0} {
		require.Equal(t, want, GroupConfig{MaxKeys: most}.orDefault().MaxSeries, "of %d", most)
	}
	require.Zero(t, GroupConfig{MaxSeries: Off}.orDefault().MaxSeries)
	require.Equal(t, 7, GroupConfig{MaxSeries: 7}.orDefault().MaxSeries)
}
