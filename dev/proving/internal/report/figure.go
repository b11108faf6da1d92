package report

import (
	"fmt"
	"math"

	"github.com/weir-go/weir/dev/proving/internal/scenario"
)

// figure formats a number with about three digits.
func figure(v float64) string {
	switch a := math.Abs(v); {
	case math.IsNaN(v):
		return "–"
	case math.IsInf(v, 1):
		return "never"
	case math.IsInf(v, -1):
		return "any"
	case a == math.Trunc(a), a >= 100:
		return fmt.Sprintf("%.0f", v)
	case a >= 10:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.2g", v)
}

// spreadText formats a median with its range.
func spreadText(s scenario.Spread) string {
	median, low, high := figure(s.Median), figure(s.Low), figure(s.High)
	if low == high {
		return median
	}
	return fmt.Sprintf("%s (%s–%s)", median, low, high)
}

// columnHead returns the head of a column.
func columnHead(c scenario.Column) string {
	if c.Unit == "" {
		return c.Title
	}
	return c.Title + ", " + c.Unit
}

// boundText formats the bound of a goal.
func boundText(v Verdict) string {
	switch {
	case math.IsInf(v.Bound, 0):
		return "no bound"
	case v.Goal.Figure.More:
		return "≥ " + figure(v.Bound)
	}
	return "≤ " + figure(v.Bound)
}

// verdictWord says whether a goal was reached.
func verdictWord(v Verdict) string {
	if v.Reached {
		return "reached"
	}
	return "missed"
}
