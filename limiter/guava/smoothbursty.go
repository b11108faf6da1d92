package guava

import (
	"errors"
	"fmt"
	"time"

	"github.com/weir-go/weir/limiter"
)

// SmoothBurstyConfig configures a [SmoothBursty].
type SmoothBurstyConfig struct {
	// Rate is the rate at which permits are added; not Unlimited. Required.
	Rate limiter.Rate
	// MaxBurst is the idle time whose permits are stored, above 0. Default 1s.
	MaxBurst time.Duration
	// MaxWaiters is the maximum number of callers that may wait at once. Further callers get
	// limiter.ErrQueueFull. Default no bound.
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

// SmoothBursty is Guava's RateLimiter without a warm-up: a pacer that stores the permits of idle
// time, up to those of MaxBurst. Stored permits are free.
//
// All methods are safe for concurrent use. Only Wait and WaitAtMost block. The zero value does not
// work: use NewSmoothBursty.
type SmoothBursty struct{ *pacer }

// NewSmoothBursty returns a pacer without stored permits. It panics with the error of c.Validate if
// c is invalid.
func NewSmoothBursty(c SmoothBurstyConfig) *SmoothBursty { return NewSmoothBurstyAt(c, time.Now()) }

// NewSmoothBurstyAt is like NewSmoothBursty, for use with TakeAt and ReserveAt from t0 on.
func NewSmoothBurstyAt(c SmoothBurstyConfig, t0 time.Time) *SmoothBursty {
	if err := c.Validate(); err != nil {
		panic(err)
	}
	if c.MaxBurst == 0 {
		c.MaxBurst = time.Second
	}
	return &SmoothBursty{newPacer(c.Rate, c.MaxWaiters, t0, curve{burst: c.MaxBurst.Seconds()})}
}
