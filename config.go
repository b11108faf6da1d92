package weir

import (
	"errors"
	"fmt"
	"time"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/limiter"
)

// Config configures a [Gate]. The zero value limits nothing and has a breaker with its defaults.
type Config struct {
	// Rate is how many calls may pass per unit of time. Default no limit.
	Rate limiter.Rate
	// Burst is how many calls may pass at once, up to 2^40. limiter.Off lets none pass. Default the
	// calls of one second, at least 1.
	Burst int
	// MaxWait is how long a call may wait for its turn. Calls that wait are refused when the breaker
	// opens. A hold (Gate.Hold) that lasts longer refuses the call. With MaxWait a histogram of 2 KB
	// keeps how long the calls waited that passed after a wait. Default 0: no call waits.
	MaxWait time.Duration
	// Breaker configures the breaker. Default that of breaker.Config.
	Breaker breaker.Config
}

// Validate returns an error that names every field that is out of bounds, or nil if there is none.
func (c Config) Validate() error {
	var errs []error
	fault := func(format string, args ...any) { errs = append(errs, fmt.Errorf("weir: "+format, args...)) }
	if c.MaxWait < 0 {
		fault("MaxWait is %v, must be at least 0", c.MaxWait)
	}
	if c.Rate == (limiter.Rate{}) {
		if c.Burst != 0 {
			fault("Burst is %d, must be 0 where there is no Rate", c.Burst)
		}
		if c.MaxWait > 0 {
			fault("MaxWait is %v, must be 0 where there is no Rate", c.MaxWait)
		}
	} else if err := c.limit().Validate(); err != nil {
		errs = append(errs, fmt.Errorf("weir: %w", err))
	}
	if err := c.Breaker.Validate(); err != nil {
		errs = append(errs, fmt.Errorf("weir: Breaker: %w", err))
	}
	return errors.Join(errs...)
}

func (c Config) limit() limiter.TokenBucketConfig {
	return limiter.TokenBucketConfig{Rate: c.Rate, Burst: c.Burst}
}
