package breaker

import (
	"errors"
	"math"
	"math/rand/v2"
	"time"

	"github.com/weir-go/weir/window"
)

// ThrottleConfig says which share of the calls a [Throttle] refuses. The zero value
// is a sensible throttle; it may be shared.
type ThrottleConfig struct {
	// K is how many calls are made for each that the service accepts before any is
	// refused, from 1 on. With 2 nothing is refused until half of the calls fail; less
	// spares the service more, and refuses calls that it would have accepted. Default 2.
	K float64
	// MinCalls is the number of requests in the window below which none is refused,
	// from 1 on. Off refuses from the first failure. Default 20.
	MinCalls int
	// CountRefused counts what the throttle refuses among the requests, as the book
	// has it. A service that is down is then all but left alone, but once it is well
	// again the calls to it no more than double within each window, which takes minutes.
	// Without it only the calls that were made count: of N calls in a window some √N go
	// to a service that is down, and all do within a window of its being well. Default
	// false.
	CountRefused bool

	// MinRefusal is the probability, from 0 to 1, below which no call is refused at
	// all. Default 0.
	MinRefusal float64
	// MaxRefusal is the probability, above 0 and up to 1, above which it does not
	// rise, so that the rest of the calls pass whatever has happened. Default 0.99.
	MaxRefusal float64
	// PassEvery lets one call pass that would be refused where none has passed for so
	// long, so that a trickle of calls finds out too that the service is well. Off does
	// not. Default 1 s.
	PassEvery time.Duration

	// Window is the span of time that is judged, from 1 ms to 30 days. Default 10 s.
	Window time.Duration
	// Buckets divide the window, which moves by one bucket at a time: from 1 to
	// 100,000, none longer than an hour. Default 10.
	Buckets int

	// Classify says what an error, or nil, means, as Config.Classify does: a success is
	// accepted, a failure is not, and what is ignored is no request. Default
	// DefaultClassify.
	Classify func(err error) Outcome
	// Rand returns a random number from 0 up to, but not, 1. It is called once for each
	// call that may be refused, from any number of goroutines at once. Give one with a
	// seed to have the same calls refused each time. Default rand.Float64 of
	// math/rand/v2.
	Rand func() float64
}

// Validate returns an error that names every field that is out of bounds, and nil
// where there is none.
func (c ThrottleConfig) Validate() error {
	var fs faults
	if c.K != 0 && !(c.K >= 1 && c.K <= math.MaxFloat64) {
		fs.add("K is %v, must be finite and at least 1", c.K)
	}
	if c.MinCalls < Off {
		fs.add("MinCalls is %d, must be at least 1, or Off", c.MinCalls)
	}
	if !(c.MinRefusal >= 0 && c.MinRefusal <= 1) {
		fs.add("MinRefusal is %v, must lie between 0 and 1", c.MinRefusal)
	}
	if !(c.MaxRefusal >= 0 && c.MaxRefusal <= 1) {
		fs.add("MaxRefusal is %v, must be above 0 and at most 1", c.MaxRefusal)
	}
	if highest := c.orDefault().MaxRefusal; c.MinRefusal > highest && c.MinRefusal <= 1 {
		fs.add("MinRefusal is %v, must be at most MaxRefusal, %v", c.MinRefusal, highest)
	}
	fs.atLeast("PassEvery", c.PassEvery, Off)
	if err := (window.Config{Span: c.Window, Buckets: c.Buckets}).Validate(); err != nil {
		fs.add("Window and Buckets: %w", err)
	}
	return errors.Join(fs...)
}

func (c ThrottleConfig) orDefault() ThrottleConfig {
	c.K = either(c.K, 2, Off)
	c.MinCalls = either(c.MinCalls, 20, 1)
	c.MaxRefusal = either(c.MaxRefusal, 0.99, Off)
	c.PassEvery = either(c.PassEvery, time.Second, math.MaxInt64)
	c.Window = either(c.Window, 10*time.Second, Off)
	c.Buckets = either(c.Buckets, 10, Off)
	if c.Rand == nil {
		c.Rand = rand.Float64
	}
	return c
}
