package measure_test

import (
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/dev/bench/internal/measure"
)

// countingLoop returns a loop that adds its operations to total.
func countingLoop(total *atomic.Int64) measure.Loop {
	return func(n int) int {
		for range n {
			total.Add(1)
		}
		return n
	}
}

func TestRunTogetherRunsEveryLoopNTimes(t *testing.T) {
	var total atomic.Int64
	loop := countingLoop(&total)
	ns, err := measure.RunTogether(1000, slices.Repeat([]measure.Loop{loop}, 3)...)
	require.NoError(t, err)
	require.EqualValues(t, 3000, total.Load())
	require.Positive(t, ns)
}

func TestAnUnexpectedResultIsAnError(t *testing.T) {
	lazy := func(n int) int { return n - 1 }
	_, err := measure.RunTogether(10, lazy)
	require.EqualError(t, err, "9 of 10 operations had the expected result")
	_, err = measure.Serial.CountFor(lazy, time.Millisecond)
	require.Error(t, err)

	var total atomic.Int64
	_, err = measure.Plan{Rounds: 2, Each: time.Millisecond}.Compare(measure.Serial, countingLoop(&total), lazy)
	require.ErrorContains(t, err, "peer: ")
	_, err = measure.Plan{Rounds: 2, Each: time.Millisecond}.Compare(measure.Serial, lazy, countingLoop(&total))
	require.ErrorContains(t, err, "weir: ")
}

func TestCountForTakesAboutTheGivenTime(t *testing.T) {
	var total atomic.Int64
	n, err := measure.Goroutines8.CountFor(countingLoop(&total), 10*time.Millisecond)
	require.NoError(t, err)
	require.Greater(t, n, 100, "an atomic add takes less than 100 µs on any machine")
}

func TestCompareTakesTurns(t *testing.T) {
	var order []string
	turn := func(name string) measure.Loop {
		return func(n int) int {
			order = append(order, name)
			for began := time.Now(); time.Since(began) < 2*time.Millisecond; {
			}
			return n
		}
	}
	c, err := measure.Plan{Rounds: 3, Each: time.Millisecond}.Compare(measure.Serial, turn("A"), turn("B"))
	require.NoError(t, err)
	require.Equal(t, []string{"A", "B", "A", "B", "A", "B"}, order[len(order)-6:])
	require.Len(t, c.Ratio, 3)
	require.Empty(t, c.Canary, "the canary is only for two threads")
	require.Equal(t, min(c.Weir[0], c.Weir[1], c.Weir[2])/min(c.Peer[0], c.Peer[1], c.Peer[2]), c.Best())
	for i, ratio := range c.Ratio {
		require.Equal(t, c.Weir[i]/c.Peer[i], ratio)
	}
}

func TestCostMeasuresOneLoop(t *testing.T) {
	var total atomic.Int64
	cost, err := measure.Plan{Rounds: 3, Each: time.Millisecond}.Cost(measure.Serial, countingLoop(&total))
	require.NoError(t, err)
	require.Positive(t, cost.Median)
	_, err = measure.Plan{Rounds: 3}.Cost(measure.Serial, func(int) int { return 0 })
	require.Error(t, err)
}

func TestComparisonOnTwoThreadsHasACanary(t *testing.T) {
	var total atomic.Int64
	c, err := measure.Plan{Rounds: 2, Each: time.Millisecond}.Compare(measure.Threads, countingLoop(&total), countingLoop(&total))
	require.NoError(t, err)
	require.Len(t, c.Canary, 2)
	require.Positive(t, c.Canary[0])
}

func TestSpreadHasMedianIntervalAndWorst(t *testing.T) {
	s := measure.SpreadOf([]float64{3, 1, 2, 5, 4, 10, 9, 8, 7, 6})
	require.Equal(t, measure.Spread{Median: 5.5, Lo: 2, Hi: 9, Worst: 10}, s, "the interval is from the second to the ninth of ten values, as in benchstat")
	require.InDelta(t, 0.64, s.Noise(), 0.01)
	require.Equal(t, "5.5 ±64%", s.String())

	few := measure.SpreadOf([]float64{2, 1, 3})
	require.Equal(t, measure.Spread{Median: 2, Lo: 1, Hi: 3, Worst: 3}, few, "with three values the interval is their range")
	require.Zero(t, measure.SpreadOf(nil))
	require.Zero(t, measure.Spread{}.Noise())
}

func TestVerdicts(t *testing.T) {
	around := func(middle float64, canary ...float64) measure.Comparison {
		return measure.Comparison{Ratio: []float64{
			middle - 0.09, middle - 0.07, middle - 0.05, middle - 0.03, middle - 0.01,
			middle + 0.01, middle + 0.03, middle + 0.05, middle + 0.07, middle + 0.09,
		}, Canary: canary}
	}
	steady := func(ratio float64) measure.Comparison {
		return measure.Comparison{Ratio: slices.Repeat([]float64{ratio}, 10)}
	}
	for name, step := range map[string]struct {
		c     measure.Comparison
		bound float64
		want  measure.Verdict
	}{
		"no bound":                                 {around(9), 0, measure.NoBound},
		"below the bound":                          {around(0.3), 0.35, measure.Reached},
		"above the bound by less than the noise":   {around(0.4), 0.35, measure.Close},
		"above the bound by more than the noise":   {around(0.5), 0.35, measure.Missed},
		"two threads on two cores":                 {around(0.5, 0.5, 0.51, 0.52), 0.35, measure.Missed},
		"two threads, within their drift":          {around(0.5, 0.5, 0.51, 0.52), 0.42, measure.Close},
		"two threads on one core":                  {around(0.5, 0.5, 0.9, 0.8), 0.35, measure.NotJudged},
		"two threads on one core, below the bound": {around(0.3, 0.5, 0.9, 0.8), 0.35, measure.NotJudged},
		"above the bound, without noise":           {steady(0.351), 0.35, measure.Missed},
	} {
		require.Equal(t, step.want, step.c.Judge(step.bound), name)
	}
}

func TestAllocsCountsObjects(t *testing.T) {
	var first, second *[100]byte
	require.Equal(t, 2, measure.Allocs(func(n int) int {
		for range n {
			first, second = new([100]byte), new([100]byte)
		}
		return n
	}, 1000))
	require.NotSame(t, first, second)
}

func TestWalkVisitsEveryObject(t *testing.T) {
	seen := map[int]int{}
	require.Equal(t, 30, measure.Walk(10, measure.Far, func(i int) bool { seen[i]++; return true })(30))
	require.Len(t, seen, 10)
	require.Equal(t, 3, seen[0], "each object is visited equally often")
	require.Zero(t, measure.Walk(1, 1, func(int) bool { return false })(5))
}
