package weir

import (
	"errors"
	"fmt"
	"time"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/inflight"
	"github.com/weir-go/weir/limiter"
)

// Config configures a [Gate]. The zero value has a breaker with its defaults and no limit. For a gate
// with another limiter, a remote limit or a throttle see [Join].
type Config struct {
	// Rate is the rate at which calls are allowed. Default no limit.
	Rate limiter.Rate
	// Burst is the number of calls that are allowed at once after an idle time, up to 2^40.
	// limiter.Off allows none. Default the calls of one second at Rate, at least 1.
	Burst int
	// MaxConcurrent is the most calls in flight, up to 1,000,000 (a bulkhead). A call takes its slot
	// after its token. A call without a slot gives its token back, and is refused with an
	// *inflight.FullError. Default 0, no bound.
	MaxConcurrent int
	// MaxWait is the longest time that a call waits for a token, a slot and the end of a hold (see
	// Gate.Hold) together. Waiting calls are refused when the breaker opens. A gate with a MaxWait
	// keeps a histogram of the waiting times, of 2 KB. Default 0, which refuses calls at once.
	MaxWait time.Duration
	// Breaker configures the breaker. Default the defaults of breaker.Config.
	Breaker breaker.Config
}

// Validate returns an error that names all invalid fields, or nil if there are none.
func (c Config) Validate() error {
	var errs []error
	fault := func(format string, args ...any) { errs = append(errs, fmt.Errorf("weir: "+format, args...)) }
	if c.MaxConcurrent != 0 && (inflight.Config{Limit: c.MaxConcurrent}).Validate() != nil {
		fault("MaxConcurrent is %d, must be between 1 and 1000000 (or 0 for no bound)", c.MaxConcurrent)
	}
	if c.MaxWait < 0 {
		fault("MaxWait is %v, must be at least 0", c.MaxWait)
	}
	if c.Rate == (limiter.Rate{}) {
		if c.Burst != 0 {
			fault("Burst is %d, must be 0 without a Rate", c.Burst)
		}
		if c.MaxWait > 0 && c.MaxConcurrent == 0 {
			fault("MaxWait is %v, must be 0 without a Rate and a MaxConcurrent", c.MaxWait)
		}
	} else if err := c.bucket().Validate(); err != nil {
		errs = append(errs, fmt.Errorf("weir: %w", err))
	}
	if err := c.Breaker.Validate(); err != nil {
		errs = append(errs, fmt.Errorf("weir: Breaker: %w", err))
	}
	return errors.Join(errs...)
}

func (c Config) bucket() limiter.TokenBucketConfig {
	return limiter.TokenBucketConfig{Rate: c.Rate, Burst: c.Burst}
}
