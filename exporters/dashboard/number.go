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

// missing is the number without a value.
var missing = number{}

// rounded returns a measured value with four significant digits, so that a row does not change by
// less. A value that is not finite is missing.
func rounded(value float64) number {
	if math.IsNaN(value) || math.IsInf(value, 0) {
		return missing
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

// exact returns the value without rounding. A value that is not finite is missing.
func exact(value float64) number {
	if math.IsNaN(value) || math.IsInf(value, 0) {
		return missing
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

// share returns part/whole. It is missing if whole is 0.
func share(part, whole float64) number {
	if whole <= 0 {
		return missing
	}
	return rounded(part / whole)
}
