package alert

import (
	"fmt"
	"math"
)

// Condition compares a value with a threshold. The zero Condition never holds.
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

// holds reports whether value meets the condition. NaN meets none.
func (c Condition) holds(value float64) bool {
	switch {
	case !c.set:
		return false
	case c.below:
		return value < c.threshold
	}
	return value > c.threshold
}

func (c Condition) finite() bool { return !math.IsNaN(c.threshold) && !math.IsInf(c.threshold, 0) }

// reachable reports whether some value between low and high meets the condition.
func (c Condition) reachable(low, high float64) bool {
	if c.below {
		return low < c.threshold
	}
	return high > c.threshold
}

// excludes reports whether c and d point in opposite directions and no value meets both.
func (c Condition) excludes(d Condition) bool {
	if c.below == d.below {
		return false
	}
	if c.below {
		c, d = d, c
	}
	return d.threshold <= c.threshold
}

// worse reports whether a is closer than b to meeting the condition, or further past the threshold.
func (c Condition) worse(a, b float64) bool {
	if c.below {
		return a < b
	}
	return a > b
}
