package limiter

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// WindowConfig configures a [FixedWindow], a [SlidingWindow] or a [SlidingLog].
type WindowConfig struct {
	// Limit is the maximum number of tokens per window, from 1 to 2^31-1. Required.
	Limit int
	// Window is the length of a window, from 1ns to 36 years. Required.
	Window time.Duration
	// Buckets is the number of parts that a SlidingWindow divides the window into, up to 100,000.
	// Default 10. FixedWindow and SlidingLog do not use it.
	Buckets int
	// CountRefused counts the tokens of refused requests as well, so that a caller that keeps
	// asking stays locked out. A request to a [Joint] counts if any limiter of the Joint refuses
	// it. Requests that wait do not count. Default false.
	CountRefused bool
	// MaxWaiters is the maximum number of callers that may wait at once. Further callers get
	// ErrQueueFull. Default no bound.
	MaxWaiters int
	// Name appears in errors and metrics. A limiter with a name keeps statistics and is a
	// [stat.Source]. Default no name and no statistics.
	Name string
	// Shadow allows all requests and counts those that would have been refused. Requires a Name.
	// Default false.
	Shadow bool
}

const (
	maxWindow      = 36 * 365 * 24 * time.Hour // sums of times do not overflow
	maxBuckets     = 100_000
	defaultBuckets = 10
)

// Validate returns an error that names every invalid field, or nil.
func (c WindowConfig) Validate() error {
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf("limiter: "+format, args...)) }
	if c.Limit < 1 || c.Limit > math.MaxInt32 {
		fault("Limit is %d, must be between 1 and %d", c.Limit, math.MaxInt32)
	}
	if c.Window < 1 || c.Window > maxWindow {
		fault("Window is %s, must be above 0 and at most %s", c.Window, maxWindow)
	}
	if c.Buckets < 0 || c.Buckets > maxBuckets {
		fault("Buckets is %d, must be between 1 and %d (or 0 for the default)", c.Buckets, maxBuckets)
	}
	return errors.Join(append(faults, validateCommon(c.MaxWaiters, c.Name, c.Shadow))...)
}

// validateCommon checks the fields that most configurations have.
func validateCommon(maxWaiters int, name string, shadow bool) error {
	var faults []error
	if maxWaiters < 0 {
		faults = append(faults, fmt.Errorf("limiter: MaxWaiters is %d, must be at least 1 (or 0 for no bound)", maxWaiters))
	}
	if shadow && name == "" {
		faults = append(faults, errors.New("limiter: Shadow is set without a Name, must have both"))
	}
	return errors.Join(faults...)
}
