package measure

import (
	"fmt"
	"slices"

	"golang.org/x/perf/benchmath"
)

// Spread is what is known of a figure that was measured several times: its median, and the interval in which
// the true one lies with a confidence of 95 %, as benchstat has it, without assuming any distribution.
type Spread struct {
	Median, Lo, Hi float64
	Worst          float64 // the largest of all
}

// SpreadOf sums up the values. Without any it is zero.
func SpreadOf(values []float64) Spread {
	if len(values) == 0 {
		return Spread{}
	}
	s := benchmath.AssumeNothing.Summary(benchmath.NewSample(slices.Clone(values), &benchmath.DefaultThresholds), 0.95)
	worst := slices.Max(values)
	// With fewer than six values there is no such interval, and benchstat's is infinite.
	return Spread{Median: s.Center, Lo: max(s.Lo, slices.Min(values)), Hi: min(s.Hi, worst), Worst: worst}
}

// Noise is half of the interval's width by the median.
func (s Spread) Noise() float64 {
	if s.Median == 0 {
		return 0
	}
	return (s.Hi - s.Lo) / 2 / s.Median
}

func (s Spread) String() string { return fmt.Sprintf("%.3g ±%.0f%%", s.Median, 100*s.Noise()) }
