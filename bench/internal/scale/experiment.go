package scale

import (
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/weir-go/weir/bench/internal/chart"
	"github.com/weir-go/weir/bench/internal/fit"
	"github.com/weir-go/weir/bench/internal/measure"
)

// Experiment is one thing that grows, and what it does to costs.
type Experiment struct {
	File  string // of its picture, without ending
	Title string
	X, Y  string // what the axes are
	Sizes []int
	Lines []Line
	Why   string // the growths stated below are so
}

// Line is one cost in an experiment.
type Line struct {
	Name string
	Says fit.Growth // how the cost grows, as stated
	Upto int        // the last size that is measured; 0 for all
	Cost func(size int) (ns float64, err error)
}

// Curve is what was measured of a line.
type Curve struct {
	Line
	Points []fit.Point
}

// All lists the experiments. Each point is measured for about as long as each.
func All(each time.Duration) []Experiment {
	t := timer{each}
	return []Experiment{t.keys(), t.buckets(), t.breakers(), t.rules(), t.sources(), t.waiters()}
}

// Run measures the curves.
func (e Experiment) Run() (curves []Curve, err error) {
	for _, line := range e.Lines {
		curve := Curve{Line: line}
		for _, size := range e.Sizes {
			if line.Upto > 0 && size > line.Upto {
				break
			}
			runtime.GC() // what the point before has left is no cost of this one
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

// Chart draws the curves.
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

// parts is how often a point is measured, of which the quickest counts: what else runs on the machine only ever adds.
const parts = 7

// quickest is nanoseconds for one piece of the loop's work.
func (t timer) quickest(loop measure.Loop) (float64, error) {
	n, err := measure.Serial.CountFor(loop, t.each/parts)
	if err != nil {
		return 0, err
	}
	var costs []float64
	for range parts {
		ns, err := measure.Serial.Cost(loop, n)
		if err != nil {
			return 0, err
		}
		costs = append(costs, ns)
	}
	return slices.Min(costs), nil
}

// decades are the powers of ten from the first to the last.
func decades(first, last int) (sizes []int) {
	for n := first; n <= last; n *= 10 {
		sizes = append(sizes, n)
	}
	return sizes
}
