package alert

import (
	"errors"
	"math"
	"reflect"
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
	// startGroup is start for a value with members. It also returns the group, which keeps what the
	// previous group knew if both groups have members of the same kind.
	startGroup func(before any) (s sampler, group any)
	// Values with equal ids can share a sampler: see Monitor.Reconfigure. The id is nil if the
	// value has to start again, or if its sampler remembers nothing.
	id any
}

// valueID is Value.id of a value that remembers samples.
type valueID struct {
	name  string // with the spans
	of    any    // the source
	param float64
}

// newValueID returns an id, or nil if sources like this cannot be compared.
func newValueID(name string, of any, param float64) any {
	if !reflect.ValueOf(of).Comparable() {
		return nil
	}
	return valueID{name, of, param}
}

// sampling is a value that is being sampled.
type sampling struct {
	sample sampler
	id     any // Value.id
	group  any // of a value with members
}

// beginSampling begins to sample the value. It continues the previous sampling if that is of an
// equal value.
func (v Value) beginSampling(before *sampling) *sampling {
	if before != nil && v.id != nil && v.id == before.id {
		return before
	}
	if v.startGroup == nil {
		return &sampling{sample: v.start(), id: v.id}
	}
	s := &sampling{}
	if before != nil {
		s.group = before.group
	}
	s.sample, s.group = v.startGroup(s.group)
	return s
}

// measurement is a value at one moment.
type measurement struct {
	Value float64 // the number that the rule judges
	Calls int64   // how many calls Value is computed from
	Bad   int64   // how many of them were bad
	OK    bool    // false: there is no data, and Value and Bad are not set
	why   missing // why there is no data, unless the value is missing

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
// that there is no data, and counts as an error of the rule.
func Gauge(read func() float64) Value {
	return newGauge("gauge", read == nil, func(time.Time) measurement {
		v := read()
		return measurement{Value: v, OK: !math.IsNaN(v)}
	})
}

// True is 1 while holds returns true, and 0 otherwise.
//
// For an alert about a breaker or a gate, pass the method Tripped: True(payments.Tripped). It is 1
// from the moment the breaker opens, automatically or by hand, until it has closed again. It stays
// 1 while the breaker is half-open, so that a rule with a For fires once per outage and resolves
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
