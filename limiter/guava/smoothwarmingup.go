package guava

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/weir-go/weir/limiter"
)

// SmoothWarmingUpConfig configures a [SmoothWarmingUp].
type SmoothWarmingUpConfig struct {
	// Rate is how fast permits come once the limiter is warm, finite. Must be given.
	Rate limiter.Rate
	// WarmUp is how long it takes to warm up, and to cool down; at least 1 µs. Must be given.
	WarmUp time.Duration
	// ColdFactor is how many times longer the interval is when the limiter is cold, at least 1. Default 3.
	ColdFactor float64
	// MaxWaiters is the most callers that may wait at once; the next gets limiter.ErrQueueFull. Default:
	// no bound.
	MaxWaiters int
}

// Validate returns nil for a configuration that makes sense, and otherwise an error that names all faults.
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

// SmoothWarmingUp is Guava's RateLimiter of that name: a pacer for a service that must not be called at the full rate after
// idle time, because its caches are cold. The more permits are stored, the more each costs.
//
//	interval
//	  cold ┤                 ╱
//	       │               ╱
//	stable ┤─────────────╱
//	       └─────────────┬───┬── stored permits
//	                threshold max
//
// It starts cold. All methods are safe for concurrent use; only Wait and WaitAtMost block.
type SmoothWarmingUp struct{ *pacer }

// NewSmoothWarmingUp makes a cold pacer that owes nothing. It panics with the error of c.Validate where there is one.
func NewSmoothWarmingUp(c SmoothWarmingUpConfig) *SmoothWarmingUp {
	return NewSmoothWarmingUpAt(c, time.Now())
}

// NewSmoothWarmingUpAt makes a pacer that is driven by given times, from t0 on.
func NewSmoothWarmingUpAt(c SmoothWarmingUpConfig, t0 time.Time) *SmoothWarmingUp {
	if err := c.Validate(); err != nil {
		panic(err)
	}
	if c.ColdFactor == 0 {
		c.ColdFactor = 3
	}
	return &SmoothWarmingUp{newPacer(c.Rate, c.MaxWaiters, t0, curve{warmup: float64(c.WarmUp.Microseconds()), cold: c.ColdFactor})}
}
