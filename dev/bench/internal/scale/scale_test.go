package scale_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/dev/bench/internal/scale"
)

func TestEveryExperimentRunsAtItsFirstSizes(t *testing.T) {
	for _, e := range scale.All(time.Millisecond) {
		require.Greater(t, len(e.Sizes), 2, e.Title)
		e.Sizes = e.Sizes[:2]
		curves, err := e.Run()
		require.NoError(t, err)
		require.NotEmpty(t, e.Why, e.Title)
		require.Len(t, e.Chart(curves).Lines, len(e.Lines))
		for _, c := range curves {
			require.Lenf(t, c.Costs, 2, "%s: %s", e.Title, c.Name)
			require.Positive(t, c.Costs[1])
		}
	}
}

func TestRunGivesEachLineItsPoints(t *testing.T) {
	errLost := errors.New("lost")
	e := scale.Experiment{Title: "thing", Sizes: []int{1, 10, 100}, Lines: []scale.Line{
		{Name: "all", Cost: func(size int) (float64, error) { return float64(2 * size), nil }},
		{Name: "some", Upto: 10, Cost: func(int) (float64, error) { return 5, nil }},
	}}
	curves, err := e.Run()
	require.NoError(t, err)
	require.Equal(t, []float64{2, 20, 200}, curves[0].Costs)
	require.Equal(t, []float64{5, 5}, curves[1].Costs)
	e.Lines[1].Cost = func(int) (float64, error) { return 0, errLost }
	_, err = e.Run()
	require.ErrorIs(t, err, errLost)
	require.EqualError(t, err, "thing, some at 1: lost")
}

func TestCollapsedComparesTheMostCoresWithTwo(t *testing.T) {
	e := scale.Cores(time.Millisecond)
	require.Equal(t, 64, e.Sizes[len(e.Sizes)-1])
	e.Sizes = []int{1, 2, 64}
	require.Equal(t, []string{"bad: 40 ns per call at GOMAXPROCS 2, and 80 ns at 64"}, e.Collapsed([]scale.Curve{
		{Line: scale.Line{Name: "good"}, Costs: []float64{20, 80, 80}}, {Line: scale.Line{Name: "bad"}, Costs: []float64{80, 40, 80}},
	}))
}
