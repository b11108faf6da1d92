package alert

import "time"

// Sample is a measurement that tests make.
type Sample = measurement

// Custom returns a value with the measurements that read returns.
func Custom(read func(t time.Time) Sample) Value {
	v := newGauge("value", read == nil, read)
	v.counts, v.countsBad = true, true
	return v
}

// Holds reports whether value meets the condition.
func (c Condition) Holds(value float64) bool { return c.holds(value) }
