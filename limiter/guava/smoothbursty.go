package guava

import (
	"errors"
	"fmt"
	"time"

	"github.com/weir-go/weir/limiter"
)

// SmoothBurstyConfig is the argument of [NewSmoothBursty].
type SmoothBurstyConfig struct {
	// Rate is the rate at which permits are added; not Unlimited. Required.
	Rate limiter.Rate
	// MaxBurst is the idle time whose permits are stored, above 0. Default 1s.
	MaxBurst time.Duration
	// MaxWaiters is the maximum number of callers that may wait at once. Further callers are
	// refused. Default no bound.
	MaxWaiters int
}

// Validate returns an error that names every invalid field, or nil.
func (c SmoothBurstyConfig) Validate() error {
	err := validate(c.Rate, c.MaxWaiters)
	if c.MaxBurst < 0 {
		err = errors.Join(err, fmt.Errorf("guava: MaxBurst is %s, must be above 0 (or 0 for the default)", c.MaxBurst))
	}
	return err
}

// NewSmoothBursty returns Guava's RateLimiter without a warm-up. It stores the permits of idle
// time, up to those of MaxBurst. Stored permits are free. A new one has no stored permits.
//
// NewSmoothBursty panics with the error of c.Validate if c is invalid.
func NewSmoothBursty(c SmoothBurstyConfig) *RateLimiter { return newSmoothBursty(c, time.Now()) }

func newSmoothBursty(c SmoothBurstyConfig, t0 time.Time) *RateLimiter {
	if err := c.Validate(); err != nil {
		panic(err)
	}
	if c.MaxBurst == 0 {
		c.MaxBurst = time.Second
	}
	return newRateLimiter(c.Rate, c.MaxWaiters, t0, curve{burst: c.MaxBurst.Seconds()})
}
