package guava

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/weir-go/weir/limiter"
)

// SmoothWarmingUpConfig is the argument of [NewSmoothWarmingUp].
type SmoothWarmingUpConfig struct {
	// Rate is the rate at which permits are added once the limiter is warm; not Unlimited.
	// Required.
	Rate limiter.Rate
	// WarmUp is how long the limiter takes to warm up, and to cool down when idle, at least 1µs.
	// Required.
	WarmUp time.Duration
	// ColdFactor is how many times longer the interval between requests is when the limiter is
	// cold, at least 1. Default 3.
	ColdFactor float64
	// MaxWaiters is the maximum number of callers that may wait at once. Further callers are
	// refused. Default no bound.
	MaxWaiters int
}

// Validate returns an error that names every invalid field, or nil.
func (c SmoothWarmingUpConfig) Validate() error {
	err := validate(c.Rate, c.MaxWaiters)
	if c.WarmUp < time.Microsecond {
		err = errors.Join(err, fmt.Errorf("guava: WarmUp is %s, must be at least 1µs", c.WarmUp))
	}
	if c.ColdFactor != 0 && !(c.ColdFactor >= 1) || math.IsInf(c.ColdFactor, 0) {
		err = errors.Join(err, fmt.Errorf("guava: ColdFactor is %g, must be at least 1 (or 0 for the default)", c.ColdFactor))
	}
	return err
}

// NewSmoothWarmingUp returns Guava's RateLimiter with a warm-up, for a service that must not be
// called at the full rate after idle time, for example because its caches are cold. The more
// permits are stored, the more each of them costs.
//
//	interval
//	  cold ┤                 ╱
//	       │               ╱
//	stable ┤─────────────╱
//	       └─────────────┬───┬── stored permits
//	                threshold max
//
// A new one is cold. NewSmoothWarmingUp panics with the error of c.Validate if c is invalid.
func NewSmoothWarmingUp(c SmoothWarmingUpConfig) *RateLimiter {
	return newSmoothWarmingUp(c, time.Now())
}

func newSmoothWarmingUp(c SmoothWarmingUpConfig, t0 time.Time) *RateLimiter {
	if err := c.Validate(); err != nil {
		panic(err)
	}
	if c.ColdFactor == 0 {
		c.ColdFactor = 3
	}
	return newRateLimiter(c.Rate, c.MaxWaiters, t0, curve{warmUp: float64(c.WarmUp.Microseconds()), coldFactor: c.ColdFactor})
}
