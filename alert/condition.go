package alert

import (
	"fmt"
	"math"
)

// Condition is what a value is compared with. The zero Condition never holds.
type Condition struct {
	set, below bool
	threshold  float64
}

// Above holds for values greater than the threshold.
func Above(threshold float64) Condition { return Condition{set: true, threshold: threshold} }

// Below holds for values less than the threshold.
func Below(threshold float64) Condition {
	return Condition{set: true, below: true, threshold: threshold}
}

// holds says whether the figure meets the condition. No condition holds for NaN.
func (c Condition) holds(figure float64) bool {
	switch {
	case !c.set:
		return false
	case c.below:
		return figure < c.threshold
	}
	return figure > c.threshold
}

// String describes the condition, as in "above 0.05".
func (c Condition) String() string {
	switch {
	case !c.set:
		return "never"
	case c.below:
		return fmt.Sprintf("below %v", c.threshold)
	}
	return fmt.Sprintf("above %v", c.threshold)
}

func (c Condition) finite() bool { return !math.IsNaN(c.threshold) && !math.IsInf(c.threshold, 0) }

// reachable says whether a figure between low and high can ever meet the condition.
func (c Condition) reachable(low, high float64) bool {
	if c.below {
		return low < c.threshold
	}
	return high > c.threshold
}

// clearOf says whether no figure can meet both conditions, as they look in
// opposite directions and do not overlap.
func (c Condition) clearOf(d Condition) bool {
	if c.below == d.below {
		return false
	}
	if c.below {
		c, d = d, c
	}
	return d.threshold <= c.threshold
}

// worse says whether the figure a is closer to meeting the condition than b, or further past it.
func (c Condition) worse(a, b float64) bool {
	if c.below {
		return a < b
	}
	return a > b
}
