package scale_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/dev/bench/internal/fit"
	"github.com/weir-go/weir/dev/bench/internal/scale"
)

func TestEveryExperimentRunsAtItsFirstSizes(t *testing.T) {
	for _, e := range scale.All(time.Millisecond) {
		require.Greater(t, len(e.Sizes), 3, e.Title)
		e.Sizes = e.Sizes[:2]
		curves, err := e.Run()
		require.NoError(t, err)
		require.NotEmpty(t, e.Why, e.Title)
		require.Len(t, e.Chart(curves).Lines, len(e.Lines))
		for _, c := range curves {
			require.Lenf(t, c.Points, 2, "%s: %s", e.Title, c.Name)
			require.Positive(t, c.Points[1].Cost)
		}
	}
}

func TestRunGivesEachLineItsPoints(t *testing.T) {
	errLost := errors.New("lost")
	e := scale.Experiment{Title: "thing", Sizes: []int{1, 10, 100}, Lines: []scale.Line{
		{Name: "all", Says: fit.Linear, Cost: func(size int) (float64, error) { return float64(2 * size), nil }},
		{Name: "some", Says: fit.Constant, Upto: 10, Cost: func(int) (float64, error) { return 5, nil }},
	}}
	curves, err := e.Run()
	require.NoError(t, err)
	require.Equal(t, []fit.Point{{Size: 1, Cost: 2}, {Size: 10, Cost: 20}, {Size: 100, Cost: 200}}, curves[0].Points)
	require.Equal(t, []fit.Point{{Size: 1, Cost: 5}, {Size: 10, Cost: 5}}, curves[1].Points)

	e.Lines[1].Cost = func(int) (float64, error) { return 0, errLost }
	_, err = e.Run()
	require.ErrorIs(t, err, errLost)
	require.EqualError(t, err, "thing, some at 1: lost")
}
