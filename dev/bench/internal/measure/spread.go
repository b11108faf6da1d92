package measure

import (
	"fmt"
	"slices"

	"golang.org/x/perf/benchmath"
)

// Spread summarizes the values of several measurements: the median, and the interval that contains
// the true median with a confidence of 95 %, as in benchstat. It assumes no distribution.
type Spread struct {
	Median, Lo, Hi float64
	Worst          float64 // the largest value
}

// SpreadOf summarizes the values. It returns the zero Spread if there are none.
func SpreadOf(values []float64) Spread {
	if len(values) == 0 {
		return Spread{}
	}
	s := benchmath.AssumeNothing.Summary(benchmath.NewSample(slices.Clone(values), &benchmath.DefaultThresholds), 0.95)
	worst := slices.Max(values)
	// With fewer than six values benchstat returns an infinite interval.
	return Spread{Median: s.Center, Lo: max(s.Lo, slices.Min(values)), Hi: min(s.Hi, worst), Worst: worst}
}

// Noise returns half of the width of the interval, divided by the median.
func (s Spread) Noise() float64 {
	if s.Median == 0 {
		return 0
	}
	return (s.Hi - s.Lo) / 2 / s.Median
}

func (s Spread) String() string { return fmt.Sprintf("%.3g ±%.0f%%", s.Median, 100*s.Noise()) }
