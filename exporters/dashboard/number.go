package dashboard

import (
	"encoding/json"
	"math"
)

// number is a figure that may be missing: null in JSON then. Two numbers can be
// compared by ==, so that it is seen whether a line has changed.
type number struct {
	value float64
	there bool
}

// none stands for no figure.
var none = number{}

// some is a measured figure, to four digits: nobody reads more, and the rest would
// make a line change that has not. What is not finite is missing.
func some(value float64) number {
	if math.IsNaN(value) || math.IsInf(value, 0) {
		return none
	}
	if value == 0 {
		return number{there: true}
	}
	scale := math.Pow(10, 3-math.Floor(math.Log10(math.Abs(value))))
	if rounded := math.Round(value*scale) / scale; !math.IsNaN(rounded) && !math.IsInf(rounded, 0) {
		value = rounded
	}
	return number{value, true}
}

// exact is a figure as it is.
func exact(value float64) number {
	if math.IsNaN(value) || math.IsInf(value, 0) {
		return none
	}
	return number{value, true}
}

// MarshalJSON writes the number or null.
func (n number) MarshalJSON() ([]byte, error) {
	if !n.there {
		return []byte("null"), nil
	}
	return json.Marshal(n.value)
}

// share is part of whole, and missing where the whole is nothing.
func share(part, whole float64) number {
	if whole <= 0 {
		return none
	}
	return some(part / whole)
}
