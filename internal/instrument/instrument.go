// Package instrument defines the instruments of the library: the name, kind, unit and attributes of
// each metric. docs/metrics.md lists them.
//
// They are all defined here, not next to the code that they measure, for two reasons. Several
// packages show the same metric, such as a limiter and a gate. And an exporter describes all of
// them before the first source exists.
package instrument

import (
	"math"
	"slices"

	"github.com/weir-go/weir/stat"
)

// All returns all instruments in a fixed order. The caller owns the slice but not the instruments.
func All() []*stat.Instrument { return slices.Clone(allInstruments) }

// allInstruments holds every instrument in the order of its definition.
var allInstruments []*stat.Instrument

func counter(name, unit, help string, attrs ...string) *stat.Instrument {
	return define(stat.Counter, name, unit, help, attrs)
}

func upDown(name, unit, help string, attrs ...string) *stat.Instrument {
	return define(stat.UpDown, name, unit, help, attrs)
}

func gauge(name, unit, help string, attrs ...string) *stat.Instrument {
	return define(stat.Gauge, name, unit, help, attrs)
}

// durations defines a distribution of seconds whose bounds are the powers of two from 2^first to
// 2^last.
func durations(name, help string, first, last int, attrs ...string) *stat.Instrument {
	i := define(stat.Distribution, name, "s", help, attrs)
	for exp := first; exp <= last; exp++ {
		i.Bounds = append(i.Bounds, math.Ldexp(1, exp))
	}
	return i
}

func define(kind stat.Kind, name, unit, help string, attrs []string) *stat.Instrument {
	i := &stat.Instrument{Name: name, Unit: unit, Help: help, Kind: kind, Attrs: attrs}
	allInstruments = append(allInstruments, i)
	return i
}
