package throttle

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/weir-go/weir/window"
)

// Config configures a [Throttle]. The zero value is ready to use. Several throttles may share a
// Config.
type Config struct {
	// K is the ratio of calls to accepted calls above which calls are refused, at least 1. With 2
	// no call is refused unless more than half of the calls fail. A smaller K sends less to the
	// service, and refuses calls that the service would have accepted. Default 2.
	K float64
	// MinCalls is the number of requests in the window below which no call is refused, at least 1.
	// Default 20.
	MinCalls int
	// CountRefused includes the refused calls in the requests, as the book does. A service that is
	// down then gets hardly any call. After the service has recovered, the calls to it at most
	// double within each window, so it takes minutes until all calls are allowed. Without
	// CountRefused, about √N of N calls in a window go to a service that is down, and all calls go
	// to it one window after it has recovered. Default false.
	CountRefused bool
	// MaxRefusal is the highest probability of a refusal, above 0 and at most 1. Whatever it is,
	// one call per second is allowed. Default 0.99.
	MaxRefusal float64
	// Window is the time span whose calls count, from 1ms to 30 days. The window moves in steps of
	// a tenth of it. Default 10s.
	Window time.Duration
	// Classify returns the outcome of a call that returned the given error or nil. A success is
	// accepted, a failure is not, and an ignored call is not a request. Classify is not asked about
	// errors of calls that the caller has cancelled, nor about refusals of inner guards; both are
	// ignored. The classifiers of package breaker, such as breaker.Accept, may be used. Default
	// every error is a failure.
	Classify func(err error) window.Outcome
}

// Validate returns an error that names every invalid field, or nil.
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
	c.K = valueOr(c.K, 2)
	c.MinCalls = valueOr(c.MinCalls, 20)
	c.MaxRefusal = valueOr(c.MaxRefusal, 0.99)
	c.Window = valueOr(c.Window, 10*time.Second)
	return c
}

// valueOr returns v, or the default if v is 0.
func valueOr[T int | float64 | time.Duration](v, otherwise T) T {
	if v == 0 {
		return otherwise
	}
	return v
}
