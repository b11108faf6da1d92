package alert

import (
	"errors"
	"math"
	"time"
)

// measurement is what a value saw at one moment.
type measurement struct {
	Value float64 // the figure that the rule judges
	Calls int64   // how many calls it rests on, for values that count them
	Bad   int64   // how many of those were bad, for values that count them
	OK    bool    // false: no data, and the other fields say nothing

	partial bool // a sum over a span that was not seen as a whole: it can only be larger
}

// Value is what a rule looks at. It holds no state, so one Value may be part of several rules; each
// monitor takes its own samples. The functions and sources in it are called at every evaluation, one
// at a time, and never under a lock. The zero Value is not valid.
type Value struct {
	name              string  // what the figure is, for a sentence about it
	low, high         float64 // bounds of the figure
	counts, countsBad bool    // whether measurement.Calls and measurement.Bad mean anything
	errs              []error // what is wrong with the arguments it was made of
	each              bool    // whether it has members, which may come and go

	// start begins a series of samples. Calls from before the first one are not counted.
	start func() probe
}

// reading is the sample of one member. Values without members have one, with no label.
type reading struct {
	label  string // the value of the label "key"
	name   string // what the figure is
	sample measurement
}

// probe takes one sample of each member at a time.
type probe func(t time.Time, yield func(reading)) outcome

// single is a probe of one member.
func single(name string, sample func(t time.Time) measurement) probe {
	return func(t time.Time, yield func(reading)) outcome {
		yield(reading{name: name, sample: sample(t)})
		return outcome{}
	}
}

// Gauge is the figure that read returns. NaN means that there is no data. So does an infinity,
// which is counted as an error of the rule besides.
func Gauge(read func() float64) Value {
	return plain("gauge", read == nil, func(time.Time) measurement {
		figure := read()
		return measurement{Value: figure, OK: !math.IsNaN(figure)}
	})
}

// True is 1 if holds returns true, and 0 if not.
func True(holds func() bool) Value { return truth("truth", holds == nil, holds) }

// Tripped is 1 from the moment that a breaker opens, by a verdict or by hand, until it has
// closed again, and 0 otherwise. It stays 1 while the breaker is half-open, so that a rule
// with a For fires once in an outage and resolves once, however often the breaker tries the
// service in between. A breaker in shadow mode, disabled or forced closed is not tripped. A *breaker.Breaker and a *weir.Gate have the method.
func Tripped(of interface{ Tripped() bool }) Value {
	v := truth("tripped breaker", false, func() bool { return of.Tripped() })
	if of == nil {
		v.errs = append(v.errs, errors.New("its breaker is nil"))
	}
	return v
}

func truth(name string, missing bool, holds func() bool) Value {
	v := plain(name, missing, func(time.Time) measurement {
		s := measurement{OK: true}
		if holds() {
			s.Value = 1
		}
		return s
	})
	v.low, v.high = 0, 1
	return v
}

func plain(name string, missing bool, sample func(time.Time) measurement) Value {
	v := Value{name: name, low: math.Inf(-1), high: math.Inf(1)}
	if missing {
		v.errs = []error{errors.New("its function is nil")}
	}
	v.start = func() probe { return single(name, sample) }
	return v
}
