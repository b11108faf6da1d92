package guava

import (
	"time"

	"github.com/weir-go/weir/limiter"
)

// Constructors and methods with a time, for tests.

func NewSmoothBurstyAt(c SmoothBurstyConfig, t0 time.Time) *RateLimiter {
	return newSmoothBursty(c, t0)
}

func NewSmoothWarmingUpAt(c SmoothWarmingUpConfig, t0 time.Time) *RateLimiter {
	return newSmoothWarmingUp(c, t0)
}

func (p *RateLimiter) ReserveAt(t time.Time, n int, maxWait time.Duration) (wait time.Duration, ok bool) {
	return p.reserve(clampTime(t.Sub(p.epoch)), n, maxWait)
}

func (p *RateLimiter) SetRateAt(t time.Time, r limiter.Rate) error {
	return p.setRate(clampTime(t.Sub(p.epoch)), r)
}
