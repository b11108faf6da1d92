package alert

import (
	"errors"
	"math"
	"time"
)

// Value is a number that a rule watches. It holds no state, so it may be part of several rules:
// each monitor takes samples of its own. The sources and functions of a value are called at every
// evaluation, one at a time and without a lock held. The zero Value is not valid.
type Value struct {
	name              string  // describes the number in a summary
	low, high         float64 // the range of the number
	counts, countsBad bool    // whether measurement.Calls and measurement.Bad are set
	errs              []error // the faults of the arguments
	each              bool    // whether the value has members

	// start returns a new sampler. Calls made before its first sample are not counted.
	start func() sampler
}

// measurement is what a value was at one time.
type measurement struct {
	Value float64 // the number that the rule judges
	Calls int64   // how many calls Value is computed from
	Bad   int64   // how many of them were bad
	OK    bool    // false: there is no data, and the other fields are not set

	partial bool // Value is a sum over less than its span, so the true value may be larger
}

// reading is the measurement of one member. A value without members has one reading, without a key.
type reading struct {
	key       string // the label "key"
	valueName string
	measured  measurement
}

// sampler reads each member once and yields the readings.
type sampler func(t time.Time, yield func(reading)) outcome

// sampleOne returns the sampler of a value without members.
func sampleOne(name string, measure func(t time.Time) measurement) sampler {
	return func(t time.Time, yield func(reading)) outcome {
		yield(reading{valueName: name, measured: measure(t)})
		return outcome{}
	}
}

// Gauge is the number that read returns. NaN means that there is no data. An infinity also means
// that, and counts as an error of the rule.
func Gauge(read func() float64) Value {
	return newGauge("gauge", read == nil, func(time.Time) measurement {
		v := read()
		return measurement{Value: v, OK: !math.IsNaN(v)}
	})
}

// True is 1 while holds returns true, and 0 otherwise.
//
// For an alert about a breaker or a gate, pass the method Tripped: True(payments.Tripped). It is 1
// from the moment the breaker opens, by itself or by hand, until it has closed again. It stays 1
// while the breaker is half-open, so that a rule with a For fires once per outage and resolves
// once, however often the breaker probes the service in between. A breaker that is disabled, forced
// closed or in shadow mode is not tripped. To show the last failures in every message, add them to
// the summary:
//
//	Describe: func(a Alert) string { return a.Summary + "\n" + payments.Explain() }
func True(holds func() bool) Value {
	v := newGauge("boolean", holds == nil, func(time.Time) measurement {
		m := measurement{OK: true}
		if holds() {
			m.Value = 1
		}
		return m
	})
	v.low, v.high = 0, 1
	return v
}

func newGauge(name string, isNil bool, measure func(t time.Time) measurement) Value {
	v := Value{name: name, low: math.Inf(-1), high: math.Inf(1)}
	if isNil {
		v.errs = []error{errors.New("the function is nil")}
	}
	v.start = func() sampler { return sampleOne(name, measure) }
	return v
}
