package fleet

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/weir-go/weir/limiter"
)

// cellLimit is the limit of CL.THROTTLE: see package rediscell.
type cellLimit struct {
	MaxBurst, Count int
	Period          time.Duration
}

func (c cellLimit) validate() error {
	var faults []error
	if c.MaxBurst < 0 || int64(c.MaxBurst) >= maxBurst {
		faults = append(faults, fmt.Errorf("fleet: MaxBurst is %d, must lie between 0 and %d", c.MaxBurst, int64(maxBurst)-1))
	}
	if c.Count < 1 {
		faults = append(faults, fmt.Errorf("fleet: Count is %d, must be at least 1", c.Count))
	}
	if c.Period < time.Second || c.Period > maxWindow || c.Period%time.Second != 0 {
		faults = append(faults, fmt.Errorf("fleet: Period is %s, must be whole seconds between 1s and %s", c.Period, maxWindow))
	}
	if len(faults) == 0 {
		faults = append(faults, c.validateInterval())
	}
	return errors.Join(faults...)
}

func (c cellLimit) validateInterval() error {
	interval := newCellMath(c).interval
	if interval == 0 {
		return fmt.Errorf("fleet: Count is %d, must be at most one per nanosecond, %d", c.Count, c.Period)
	}
	if float64(interval)*float64(c.MaxBurst+1) > float64(maxFillTime) {
		return fmt.Errorf("fleet: MaxBurst is %d, must be refilled within %s at %d per %s", c.MaxBurst, maxFillTime, c.Count, c.Period)
	}
	return nil
}

// compile returns the token bucket with the same rate and burst, which is used in the policy for
// outages and where this limit is combined with others. Its field cell has the limit itself.
func (c cellLimit) compile() (limitSpec, error) {
	if err := c.validate(); err != nil {
		return limitSpec{}, err
	}
	s, err := TokenBucket{Rate: limiter.Per(float64(c.Count), c.Period), Burst: c.MaxBurst + 1}.compile()
	s.cell = &c
	return s, err
}

// cellMath is the arithmetic of redis-cell, the generic cell rate algorithm.
type cellMath struct {
	moduleArgs [3]any        // of CL.THROTTLE: max_burst, count, period
	interval   time.Duration // between two tokens
	tolerance  time.Duration // how far the time of a key may run ahead of the clock
	limit      int64
}

func newCellMath(c cellLimit) cellMath {
	seconds := int64(c.Period / time.Second)
	m := cellMath{moduleArgs: [3]any{c.MaxBurst, c.Count, seconds}, limit: int64(c.MaxBurst) + 1}
	m.interval = time.Duration(float64(seconds) * 1e9 / float64(c.Count))
	m.tolerance = m.interval * time.Duration(m.limit)
	return m
}

// remainingAt returns how many tokens can be taken. room is the time by which the time stored for
// the key may still advance: each token advances it by the interval. Like redis-cell it divides
// whole microseconds, so an interval below 1µs can divide by zero.
func (m cellMath) remainingAt(room time.Duration) int64 {
	if room <= -m.interval {
		return 0
	}
	switch tokens := float64(room/time.Microsecond) / float64(m.interval/time.Microsecond); {
	case tokens != tokens: // NaN
		return 0
	case tokens >= math.MaxInt64:
		return math.MaxInt64
	default:
		return int64(tokens)
	}
}
