package neighbour_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/dev/bench/internal/measure"
	"github.com/weir-go/weir/dev/bench/internal/neighbour"
)

func TestEveryCaseRuns(t *testing.T) {
	for _, c := range neighbour.All() {
		cost, err := c.Run(100 * time.Microsecond)
		require.NoError(t, err, c.Name)
		require.Positive(t, cost.Alone, c.Name)
		require.Positive(t, cost.Slowdown(), c.Name)
	}
}

func TestSlowdownIsNextDividedByApart(t *testing.T) {
	cost := neighbour.Cost{Next: measure.Spread{Median: 30}, Apart: measure.Spread{Median: 10}}
	require.Equal(t, 3.0, cost.Slowdown())
	require.Equal(t, "share a line", cost.Sharing())
	require.Empty(t, neighbour.Cost{Next: measure.Spread{Median: 11}, Apart: measure.Spread{Median: 10}}.Sharing())
}

func TestACaseWithUnexpectedResultsIsAnError(t *testing.T) {
	lazy := neighbour.Case{Name: "lazy", Make: func(n int) []measure.Loop {
		loops := make([]measure.Loop, n)
		for i := range loops {
			// one operation less than n, except for the first loop
			loops[i] = func(n int) int { return n - i }
		}
		return loops
	}}
	_, err := lazy.Run(time.Microsecond)
	require.Error(t, err)
}
