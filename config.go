package weir

import (
	"errors"
	"fmt"
	"time"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/inflight"
	"github.com/weir-go/weir/limiter"
)

// Config configures a [Gate]. The zero value has a breaker with its defaults and no limit. For a
// gate with another limiter, a remote limit or a throttle see [Join].
type Config struct {
	// Rate is the rate at which calls are allowed. Default no limit.
	Rate limiter.Rate
	// Burst is the number of calls that are allowed at once after an idle time, up to 2^40.
	// limiter.Off allows none. Default the calls of one second at Rate, at least 1.
	Burst int
	// MaxConcurrent is the highest number of calls in flight, up to 1,000,000 (a bulkhead). A call
	// takes its slot after its token. A call without a slot gives its token back, and is refused
	// with an *inflight.FullError. If it may wait for a slot, it takes a token again when it has
	// one, so calls never begin faster than Rate and Burst allow. Default 0, no bound, or 1,000,000
	// with Adaptive.
	MaxConcurrent int
	// Adaptive bounds the calls in flight at what the service can take, from 1 to MaxConcurrent.
	// It refuses calls only on evidence of an overload: most calls time out, take half of the time
	// that callers allow, or fail with the outcome breaker.Overloaded, and hardly any is fast. Then
	// it allows only as many at once as the service answers in good time: see package inflight. The
	// deadline of a call counts even if the breaker ignores it. Soon after the service has
	// recovered it refuses none again.
	//
	// Use it for a service that can be overloaded or lose capacity. A breaker notices an overload
	// late, and then refuses all calls. All calls are judged together, so give calls that are much
	// longer than the others a gate of their own. If one of ten queries slows down a service for
	// all (docs/protection.md, "One of ten queries is slow"), one gate for them refuses 72 % of
	// all. Give each of several hosts a gate of its own as well, by a Group. If one of ten hosts
	// fails, one gate for all of them lets its calls through, and 10 % of all calls fail. Adaptive
	// costs about 900 bytes, and two readings of the clock per call. If there are more than 5,000
	// calls per second, it reads the clock only for one call in several. Default false.
	Adaptive bool
	// MaxWait is the longest time that a call waits for a token, a slot and the end of a hold (see
	// Gate.Hold) together. Waiting calls are refused when the breaker opens. A gate with a MaxWait
	// keeps a histogram of the waiting times, of 2 KB. Default 0, which refuses calls at once.
	MaxWait time.Duration
	// RefuseHopeless refuses a call with a *HopelessError if less than 5 % of the calls succeed
	// within the time until the deadline of its context. The share is estimated from the calls that
	// ended in the last 5 to 10 s. At least 60 of these calls must have succeeded or lasted as long
	// as the time until the deadline. The estimate is that of Kaplan and Meier: it allows for the
	// possibility that a call that was cut off by its deadline, failed or was ignored would have
	// succeeded later. Durations are rounded up by at most 9.1 %. A call without a deadline is
	// never refused.
	//
	// A refused call takes no token, no slot and no probe, and does not count as a failure. If a
	// call waits for its token or slot, its deadline is checked again afterwards. One hopeless call
	// per second is allowed as a test. If that call succeeds, the gate forgets the estimate and
	// learns a new one.
	//
	// RefuseHopeless does not need Breaker.Latency. It costs about four readings of the clock per
	// call, an allocation of 48 bytes with MaxConcurrent or Adaptive, and 5 kB. Default false.
	RefuseHopeless bool
	// Breaker configures the breaker. Default the defaults of breaker.Config.
	Breaker breaker.Config
}

// Validate returns an error that names all invalid fields, or nil if there are none.
func (c Config) Validate() error {
	var errs []error
	fault := func(format string, args ...any) { errs = append(errs, fmt.Errorf("weir: "+format, args...)) }
	if c.bounded() && (inflight.Config{Limit: c.MaxConcurrent, Adaptive: c.Adaptive}).Validate() != nil {
		fault("MaxConcurrent is %d, must be between 1 and 1000000 (or 0 for no bound)", c.MaxConcurrent)
	}
	if c.MaxWait < 0 {
		fault("MaxWait is %v, must be at least 0", c.MaxWait)
	}
	if c.Rate == (limiter.Rate{}) {
		if c.Burst != 0 {
			fault("Burst is %d, must be 0 without a Rate", c.Burst)
		}
		if c.MaxWait > 0 && !c.bounded() {
			fault("MaxWait is %v, must be 0 without a Rate, a MaxConcurrent and Adaptive", c.MaxWait)
		}
	} else if err := c.bucket().Validate(); err != nil {
		errs = append(errs, fmt.Errorf("weir: %w", err))
	}
	if err := c.Breaker.Validate(); err != nil {
		errs = append(errs, fmt.Errorf("weir: Breaker: %w", err))
	}
	return errors.Join(errs...)
}

// bounded reports whether calls take a slot.
func (c Config) bounded() bool { return c.MaxConcurrent != 0 || c.Adaptive }

func (c Config) bucket() limiter.TokenBucketConfig {
	return limiter.TokenBucketConfig{Rate: c.Rate, Burst: c.Burst}
}
