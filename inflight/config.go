package inflight

import (
	"errors"
	"fmt"
)

// maxLimit is small enough that the number of calls in flight fits into 21 bits.
const maxLimit = 1_000_000

// Config configures a [Limiter].
type Config struct {
	// Limit is the highest number of calls in flight, from 1 to 1,000,000. Required unless Adaptive
	// is set, and then 1,000,000 if it is 0.
	Limit int
	// Adaptive lets the limiter find how many calls the service can take, from 1 to Limit, by their
	// latency, their late failures and the word of the service: see docs/inflight.md. It costs
	// two readings of the clock per timed call. Every call is timed, or only one in several if
	// there are more than 5,000 per second. Default false.
	Adaptive bool
	// MaxWaiters is the maximum number of callers that may wait for a slot at once. Further callers
	// are refused. Default 0, no bound.
	MaxWaiters int
	// Queue configures the order of the waiters, and how long they wait. Default in order of
	// arrival, for as long as their contexts allow.
	Queue Queue
	// Name appears in errors and metrics. A limiter with a name keeps statistics and is a
	// [stat.Source]. Default none: no statistics.
	Name string
	// Shadow allows all calls and counts those that would have been refused or would have waited.
	// It requires a Name. Default false.
	Shadow bool
}

// Validate returns an error that names all invalid fields, or nil if there are none.
func (c Config) Validate() error {
	var errs []error
	if (c.Limit < 1 || c.Limit > maxLimit) && !(c.Limit == 0 && c.Adaptive) {
		errs = append(errs, fmt.Errorf("inflight: Limit is %d, must be between 1 and %d", c.Limit, maxLimit))
	}
	if c.MaxWaiters < 0 {
		errs = append(errs, fmt.Errorf("inflight: MaxWaiters is %d, must be at least 1 (or 0 for no bound)", c.MaxWaiters))
	}
	if err := c.Queue.validate(); err != nil {
		errs = append(errs, err)
	}
	if c.Shadow && c.Name == "" {
		errs = append(errs, errors.New("inflight: Shadow is set without a Name, must have both"))
	}
	return errors.Join(errs...)
}
