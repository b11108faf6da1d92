package limiter

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// WarmUpConfig says how a [WarmUp] paces.
type WarmUpConfig struct {
	Rate       Rate          // how fast permits come once it is warm, finite. Must be given.
	Period     time.Duration // how long it takes to warm up, and to cool down; at least 1 µs. Must be given.
	Cold       float64       // how many times longer the interval is when cold; at least 1. Default: 3.
	MaxWaiters int           // the most callers that may wait at once; the next gets ErrQueueFull. Default: no bound.
}

// Validate returns nil for a configuration that makes sense, and otherwise an error that names all faults.
func (c WarmUpConfig) Validate() error {
	err := validatePace(c.Rate, c.MaxWaiters)
	if c.Period < time.Microsecond {
		err = errors.Join(err, fmt.Errorf("limiter: Period is %s, must be at least 1µs", c.Period))
	}
	if c.Cold != 0 && !(c.Cold >= 1) || math.IsInf(c.Cold, 0) {
		err = errors.Join(err, fmt.Errorf("limiter: Cold is %g, must be at least 1 (or 0 for the default)", c.Cold))
	}
	return err
}

// WarmUp is Guava's RateLimiter of the kind SmoothWarmingUp, equal to it to the microsecond: a pacer for
// what must not be hit at full rate after a rest, because its caches are cold. Stored permits are not a
// present but a sign of that: the more of them there are, the more each costs.
//
//	interval
//	  cold ┤                 ╱
//	       │               ╱
//	stable ┤─────────────╱
//	       └─────────────┬───┬── stored permits
//	                threshold max
//
// It starts cold. All that is said of [Smooth] holds here too.
type WarmUp struct{ *pacer }

// NewWarmUp makes a cold pacer that owes nothing. It panics with the error of c.Validate where there is one.
func NewWarmUp(c WarmUpConfig) *WarmUp { return NewWarmUpAt(c, time.Now()) }

// NewWarmUpAt makes a pacer that is driven by given times, from t0 on.
func NewWarmUpAt(c WarmUpConfig, t0 time.Time) *WarmUp {
	if err := c.Validate(); err != nil {
		panic(err)
	}
	if c.Cold == 0 {
		c.Cold = 3
	}
	return &WarmUp{newPacer(c.Rate, c.MaxWaiters, t0, curve{warmup: float64(c.Period.Microseconds()), cold: c.Cold})}
}
