package scale

import (
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/weir-go/weir/dev/bench/internal/fit"
	"github.com/weir-go/weir/dev/bench/internal/measure"
	"github.com/weir-go/weir/internal/chart"
)

// Experiment measures costs while one size varies.
type Experiment struct {
	File  string // the name of its chart, without extension
	Title string
	X, Y  string // the titles of the axes
	Sizes []int
	Lines []Line
	Why   string // explains the stated growths
}

// Line is one cost of an experiment.
type Line struct {
	Name string
	Says fit.Growth // the stated growth
	Upto int        // the largest measured size, or 0 for all sizes
	Cost func(size int) (ns float64, err error)
}

// Curve is a line with its measured points.
type Curve struct {
	Line
	Points []fit.Point
}

// All returns the experiments. Each point is measured for about the given time.
func All(each time.Duration) []Experiment {
	t := timer{each}
	return []Experiment{t.keys(), t.buckets(), t.breakers(), t.rules(), t.sources(), t.waiters()}
}

// Run measures all points.
func (e Experiment) Run() (curves []Curve, err error) {
	for _, line := range e.Lines {
		curve := Curve{Line: line}
		for _, size := range e.Sizes {
			if line.Upto > 0 && size > line.Upto {
				break
			}
			runtime.GC() // the garbage of the previous point must not slow this one
			ns, err := line.Cost(size)
			if err != nil {
				return nil, fmt.Errorf("%s, %s at %d: %w", e.Title, line.Name, size, err)
			}
			curve.Points = append(curve.Points, fit.Point{Size: float64(size), Cost: ns})
		}
		curves = append(curves, curve)
	}
	return curves, nil
}

// Chart returns a chart of the curves.
func (e Experiment) Chart(curves []Curve) chart.Chart {
	c := chart.Chart{Title: e.Title, X: e.X, Y: e.Y}
	for _, curve := range curves {
		line := chart.Line{Name: curve.Name}
		for _, p := range curve.Points {
			line.Points = append(line.Points, chart.Point{X: p.Size, Y: p.Cost})
		}
		c.Lines = append(c.Lines, line)
	}
	return c
}

// timer measures points.
type timer struct{ each time.Duration }

// turnsPerPoint is the number of turns per point. The fastest counts, because other programs only
// ever make a turn slower.
const turnsPerPoint = 7

// quickest returns the nanoseconds per operation in the fastest turn.
func (t timer) quickest(loop measure.Loop) (float64, error) {
	n, err := measure.Serial.CountFor(loop, t.each/turnsPerPoint)
	if err != nil {
		return 0, err
	}
	var costs []float64
	for range turnsPerPoint {
		ns, err := measure.Serial.Cost(loop, n)
		if err != nil {
			return 0, err
		}
		costs = append(costs, ns)
	}
	return slices.Min(costs), nil
}

// powersOfTen returns the powers of ten from first to last.
func powersOfTen(first, last int) (sizes []int) {
	for n := first; n <= last; n *= 10 {
		sizes = append(sizes, n)
	}
	return sizes
}
