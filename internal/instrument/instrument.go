// Package instrument defines the instruments of the library: what each of its metrics is called,
// how it grows, its unit and its attributes. docs/metrics.md lists them.
//
// They stand together, and not each beside what it measures, because several packages show the
// same metric, such as a limiter and a gate, and because an exporter describes all of them before
// the first source exists.
package instrument

import (
	"math"
	"slices"

	"github.com/weir-go/weir/stat"
)

// All returns the instruments in a fixed order. The caller owns the list, but not the instruments.
func All() []*stat.Instrument {
	return slices.Concat(breakers, limiters, windows, alerts, notifiers, exporters)
}

// powersOfTwo lists the powers of two with these exponents and those between.
func powersOfTwo(first, last int) (list []float64) {
	for exp := first; exp <= last; exp++ {
		list = append(list, math.Ldexp(1, exp))
	}
	return list
}
