package limiter

import (
	"errors"
	"fmt"
	"time"
)

// SmoothConfig says how a [Smooth] paces.
type SmoothConfig struct {
	Rate       Rate          // how fast permits come, finite. Must be given.
	Burst      time.Duration // of what idle time the permits are kept, above 0. Default: 1 s.
	MaxWaiters int           // the most callers that may wait at once; the next gets ErrQueueFull. Default: no bound.
}

// Validate returns nil for a configuration that makes sense, and otherwise an error that names all faults.
func (c SmoothConfig) Validate() error {
	err := validatePace(c.Rate, c.MaxWaiters)
	if c.Burst < 0 {
		err = errors.Join(err, fmt.Errorf("limiter: Burst is %s, must be above 0 (or 0 for the default)", c.Burst))
	}
	return err
}

// Smooth is Guava's RateLimiter of the kind SmoothBursty, equal to it to the microsecond: a pacer whose
// callers pay later. A request of any size goes at once if nothing is owed; what it costs is waited
// for by the next. Permits that nobody wants are stored, up to those of Burst, and are free.
//
// It counts in microseconds, as Guava does: an interval is cut to whole ones, so rates drift
// a little, and single permits at more than a million a second cost nothing. For an exact limit take a [TokenBucket].
// All methods are safe for concurrent use; only Wait and WaitAtMost block.
type Smooth struct{ *pacer }

// NewSmooth makes a pacer with nothing stored and nothing owed. It panics with the error of c.Validate where there is one.
func NewSmooth(c SmoothConfig) *Smooth { return NewSmoothAt(c, time.Now()) }

// NewSmoothAt makes a pacer that is driven by given times, from t0 on.
func NewSmoothAt(c SmoothConfig, t0 time.Time) *Smooth {
	if err := c.Validate(); err != nil {
		panic(err)
	}
	if c.Burst == 0 {
		c.Burst = time.Second
	}
	return &Smooth{newPacer(c.Rate, c.MaxWaiters, t0, curve{burst: c.Burst.Seconds()})}
}
