// Package scale measures how the cost of an operation changes with the size of what it works on.
package scale

import (
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/weir-go/weir/dev/bench/internal/measure"
	"github.com/weir-go/weir/internal/chart"
)

// Experiment measures costs while one size varies. A cost that does not depend on the size is flat,
// but for caches.
type Experiment struct {
	File  string // the name of its chart, without extension
	Title string
	X, Y  string // the titles of the axes
	Sizes []int
	Lines []Line
	Why   string // explains the costs
}

// Line is one cost of an experiment.
type Line struct {
	Name string
	Upto int // the largest measured size, or 0 for all sizes
	Cost func(size int) (ns float64, err error)
}

// Curve is a line with the costs at the sizes of its experiment, as far as they were measured.
type Curve struct {
	Line
	Costs []float64
}

// All returns the experiments. Each point is measured for about the given time.
func All(each time.Duration) []Experiment {
	t := timer{each}
	return []Experiment{t.keys(), t.newKeys(), t.readers(), t.cores()}
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
			curve.Costs = append(curve.Costs, ns)
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
		for i, ns := range curve.Costs {
			line.Points = append(line.Points, chart.Point{X: float64(e.Sizes[i]), Y: ns})
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

// quickestOf is quickest for an operation on size things, per thing.
func (t timer) quickestOf(size int, loop measure.Loop) (float64, error) {
	ns, err := t.quickest(loop)
	return ns / float64(size), err
}

// powersOfTen returns the powers of ten from 100 to last.
func powersOfTen(last int) (sizes []int) {
	for n := 100; n <= last; n *= 10 {
		sizes = append(sizes, n)
	}
	return sizes
}
