package throttle

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/weir-go/weir/window"
)

// Config configures a [Throttle]. The zero value is a sensible throttle. A Config may be shared.
type Config struct {
	// K is how many calls are made for each call that the service accepts before any is refused,
	// at least 1. With 2 nothing is refused until half of the calls fail. A smaller K sends less to
	// the service, and refuses calls that it would have accepted. Default 2.
	K float64
	// MinCalls is the number of requests in the window below which none is refused, at least 1.
	// Default 20.
	MinCalls int
	// CountRefused counts the calls that the throttle refuses among the requests, as the book does.
	// A service that is down then gets hardly any call, but after it has recovered the calls to it
	// at most double within each window, which takes minutes. Without CountRefused, of N calls in a
	// window about √N go to a service that is down, and all do one window after it has recovered.
	// Default false.
	CountRefused bool
	// MaxRefusal is the highest probability of a refusal, above 0 and at most 1. Whatever it is, one
	// call per second is allowed. Default 0.99.
	MaxRefusal float64
	// Window is the time span whose calls count, from 1ms to 30 days. It moves by a tenth at a time.
	// Default 10s.
	Window time.Duration
	// Classify returns the outcome of a call that returned the given error or nil: a success is
	// accepted, a failure is not, and an ignored call is no request. It is not asked about errors
	// of calls whose caller has cancelled, nor about refusals of inner guards; both are ignored. The
	// classifiers of package breaker, such as breaker.Accept, may be used. Default: an error is a
	// failure.
	Classify func(err error) window.Outcome
}

// Validate returns an error that names every field that is out of bounds, or nil.
func (c Config) Validate() error {
	var faults []error
	add := func(format string, args ...any) { faults = append(faults, fmt.Errorf("throttle: "+format, args...)) }
	if c.K != 0 && !(c.K >= 1 && c.K <= math.MaxFloat64) {
		add("K is %v, must be finite and at least 1", c.K)
	}
	if c.MinCalls < 0 {
		add("MinCalls is %d, must be at least 1", c.MinCalls)
	}
	if !(c.MaxRefusal >= 0 && c.MaxRefusal <= 1) {
		add("MaxRefusal is %v, must be above 0 and at most 1", c.MaxRefusal)
	}
	if err := (window.Config{Span: c.Window, Buckets: buckets}).Validate(); err != nil {
		add("Window: %w", err)
	}
	return errors.Join(faults...)
}

func (c Config) orDefault() Config {
	c.K = either(c.K, 2)
	c.MinCalls = either(c.MinCalls, 20)
	c.MaxRefusal = either(c.MaxRefusal, 0.99)
	c.Window = either(c.Window, 10*time.Second)
	return c
}

// either returns the value that a field stands for: zero is the default.
func either[T int | float64 | time.Duration](v, zero T) T {
	if v == 0 {
		return zero
	}
	return v
}
