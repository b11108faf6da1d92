package guava

import (
	"errors"
	"fmt"
	"time"

	"github.com/weir-go/weir/limiter"
)

// SmoothBurstyConfig configures a [SmoothBursty].
type SmoothBurstyConfig struct {
	// Rate is how fast permits come, finite. Must be given.
	Rate limiter.Rate
	// MaxBurst is the idle time whose permits are stored, above 0. Default 1s.
	MaxBurst time.Duration
	// MaxWaiters is the most callers that may wait at once; the next gets limiter.ErrQueueFull. Default:
	// no bound.
	MaxWaiters int
}

// Validate returns nil for a configuration that makes sense, and otherwise an error that names all faults.
func (c SmoothBurstyConfig) Validate() error {
	err := validate(c.Rate, c.MaxWaiters)
	if c.MaxBurst < 0 {
		err = errors.Join(err, fmt.Errorf("guava: MaxBurst is %s, must be above 0 (or 0 for the default)", c.MaxBurst))
	}
	return err
}

// SmoothBursty is Guava's RateLimiter of that name: a pacer that stores the permits of idle time, up to those of MaxBurst,
// and gives them away free.
//
// All methods are safe for concurrent use; only Wait and WaitAtMost block.
type SmoothBursty struct{ *pacer }

// NewSmoothBursty makes a pacer with nothing stored and nothing owed. It panics with the error of c.Validate where there is one.
func NewSmoothBursty(c SmoothBurstyConfig) *SmoothBursty { return NewSmoothBurstyAt(c, time.Now()) }

// NewSmoothBurstyAt makes a pacer that is driven by given times, from t0 on.
func NewSmoothBurstyAt(c SmoothBurstyConfig, t0 time.Time) *SmoothBursty {
	if err := c.Validate(); err != nil {
		panic(err)
	}
	if c.MaxBurst == 0 {
		c.MaxBurst = time.Second
	}
	return &SmoothBursty{newPacer(c.Rate, c.MaxWaiters, t0, curve{burst: c.MaxBurst.Seconds()})}
}
