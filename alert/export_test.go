package alert

import "time"

// Sample is what a value saw at one moment.
type Sample = measurement

// Custom is a value of whatever read returns.
func Custom(read func(t time.Time) Sample) Value {
	v := plain("value", read == nil, read)
	v.counts, v.countsBad = true, true
	return v
}

// Holds tells whether the figure meets the condition.
func (c Condition) Holds(figure float64) bool { return c.holds(figure) }
