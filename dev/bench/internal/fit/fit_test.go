package fit_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/dev/bench/internal/fit"
)

// curve returns the cost at the powers of ten up to a million.
func curve(cost func(n float64) float64) (points []fit.Point) {
	for n := 1.0; n <= 1e6; n *= 10 {
		points = append(points, fit.Point{Size: n, Cost: cost(n)})
	}
	return points
}

func TestSlopeFindsTheExponent(t *testing.T) {
	for name, step := range map[string]struct {
		says   fit.Growth
		cost   func(n float64) float64
		slope  float64
		agrees bool
	}{
		"flat":                                  {fit.Constant, func(float64) float64 { return 40 }, 0, true},
		"flat, with cache misses":               {fit.Constant, func(n float64) float64 { return 40 * math.Pow(n, 0.13) }, 0.13, true},
		"a logarithm is taken for flat":         {fit.Constant, func(n float64) float64 { return 5 + 5*math.Log2(n) }, 0.20, true},
		"a square root is not flat":             {fit.Constant, math.Sqrt, 0.5, false},
		"linear is not flat":                    {fit.Constant, func(n float64) float64 { return n }, 1, false},
		"linear":                                {fit.Linear, func(n float64) float64 { return 7 * n }, 1, true},
		"linear on top of a constant":           {fit.Linear, func(n float64) float64 { return 50 + 7*n }, 1, true},
		"n times its square root is not linear": {fit.Linear, func(n float64) float64 { return n * math.Sqrt(n) }, 1.5, false},
		"quadratic is not linear":               {fit.Linear, func(n float64) float64 { return n * n }, 2, false},
		"flat is not linear":                    {fit.Linear, func(float64) float64 { return 40 }, 0, false},
		"n log n is taken for linear":           {fit.Linear, func(n float64) float64 { return n * math.Log2(n+1) }, 1.1, true},
	} {
		require.InDelta(t, step.slope, step.says.Slope(curve(step.cost)), 0.05, name)
		require.Equal(t, step.agrees, step.says.Agrees(curve(step.cost)), name)
	}
}

func TestAgreesNeedsTwoPoints(t *testing.T) {
	require.InDelta(t, 1, fit.Linear.Slope([]fit.Point{{1, 3}, {10, 30}}), 1e-9)
	require.False(t, fit.Linear.Agrees([]fit.Point{{1, 3}}))
	require.False(t, fit.Constant.Agrees(nil))
}

func TestGrowthString(t *testing.T) {
	require.Equal(t, "O(1) O(n) O(n^2)", fit.Constant.String()+" "+fit.Linear.String()+" "+fit.Growth(2).String())
}
