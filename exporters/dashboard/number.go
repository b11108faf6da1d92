package dashboard

import (
	"encoding/json"
	"math"
)

// number is a value that may be missing, which is null in JSON. Numbers can be compared with ==, to
// find rows that changed.
type number struct {
	value float64
	valid bool
}

// missingNumber is the number without a value.
var missingNumber = number{}

// roundedNumber returns a measured value with four significant digits, so that a smaller difference
// does not count as a change of the row. A value that is not finite is missing.
func roundedNumber(value float64) number {
	if math.IsNaN(value) || math.IsInf(value, 0) {
		return missingNumber
	}
	if value == 0 {
		return number{valid: true}
	}
	scale := math.Pow(10, 3-math.Floor(math.Log10(math.Abs(value))))
	if rounded := math.Round(value*scale) / scale; !math.IsNaN(rounded) && !math.IsInf(rounded, 0) {
		value = rounded
	}
	return number{value, true}
}

// exactNumber returns the value without rounding. A value that is not finite is missing.
func exactNumber(value float64) number {
	if math.IsNaN(value) || math.IsInf(value, 0) {
		return missingNumber
	}
	return number{value, true}
}

// MarshalJSON returns the number or null.
func (n number) MarshalJSON() ([]byte, error) {
	if !n.valid {
		return []byte("null"), nil
	}
	return json.Marshal(n.value)
}

// ratio returns part/whole. It is missing if whole is 0.
func ratio(part, whole float64) number {
	if whole <= 0 {
		return missingNumber
	}
	return roundedNumber(part / whole)
}
