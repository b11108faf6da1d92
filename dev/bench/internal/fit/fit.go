// Package fit finds how a cost grows with a size.
package fit

import (
	"fmt"
	"math"
)

// Point is the cost measured at one size. Both are above 0.
type Point struct{ Size, Cost float64 }

// Growth is the stated exponent of a cost: the cost at size n is a constant times n to this power.
type Growth float64

// The growths that occur here.
const (
	Constant Growth = 0
	Linear   Growth = 1
)

func (g Growth) String() string {
	switch g {
	case Constant:
		return "O(1)"
	case Linear:
		return "O(n)"
	}
	return fmt.Sprintf("O(n^%.3g)", float64(g))
}

// Slack is how far a measured slope may be from the stated growth. It is less than 0.5, so that
// O(√n) is not taken for O(1), nor for O(n). Caches cause a slope even if the number of steps is
// constant: as the working set outgrows one cache after another, a step becomes five to ten times
// as expensive. That is a slope of 0.1 to 0.15 over seven powers of ten, and of 0.2 to 0.3 over
// three.
const Slack = 0.35

// Slope returns the exponent that fits the points best: the slope of the line through their
// logarithms, by least squares. For a growing cost it uses only the upper half of the sizes, where
// fixed costs no longer matter. It returns NaN for fewer than two points.
func (g Growth) Slope(points []Point) float64 {
	if g != Constant {
		points = upperHalf(points)
	}
	var n, x, y, xx, xy float64
	for _, p := range points {
		lx, ly := math.Log(p.Size), math.Log(p.Cost)
		n, x, y, xx, xy = n+1, x+lx, y+ly, xx+lx*lx, xy+lx*ly
	}
	return (n*xy - x*y) / (n*xx - x*x)
}

// Agrees reports whether the points grow as stated.
func (g Growth) Agrees(points []Point) bool {
	return math.Abs(g.Slope(points)-float64(g)) <= Slack
}

// upperHalf returns the points in the upper half of the range of sizes on a logarithmic scale, but
// at least three.
func upperHalf(points []Point) []Point {
	if len(points) < 4 {
		return points
	}
	from := math.Sqrt(points[0].Size * points[len(points)-1].Size)
	for i := range points {
		if points[i].Size >= from || len(points)-i == 3 {
			return points[i:]
		}
	}
	return points
}
