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
	if c.Period < time.Second || c.Period > maxSpan || c.Period%time.Second != 0 {
		faults = append(faults, fmt.Errorf("fleet: Period is %s, must be whole seconds between 1s and %s", c.Period, maxSpan))
	}
	if len(faults) == 0 {
		faults = append(faults, c.validateInterval())
	}
	return errors.Join(faults...)
}

func (c cellLimit) validateInterval() error {
	interval := newCellMath(c).interval
	if interval == 0 {
		return fmt.Errorf("fleet: Count is %d, must be at most one a nanosecond, %d", c.Count, c.Period)
	}
	if float64(interval)*float64(c.MaxBurst+1) > float64(maxFill) {
		return fmt.Errorf("fleet: MaxBurst is %d, must be gathered within %s at %d in %s", c.MaxBurst, maxFill, c.Count, c.Period)
	}
	return nil
}

func (c cellLimit) compile() (scopedLimit, error) {
	if err := c.validate(); err != nil {
		return scopedLimit{}, err
	}
	bucket := TokenBucket{Rate: limiter.Per(float64(c.Count), c.Period), Burst: c.MaxBurst + 1}
	return scopedLimit{limitSpec: cellSpec{cellLimit: c, bucketSpec: bucket.spec()}}, nil
}

// cellRule is a cellLimit, and the bucket of its rate for the policies and among other limits.
type cellSpec struct {
	cellLimit
	bucketSpec
}

// cell is the arithmetic of redis-cell.
type cellMath struct {
	moduleArgs [3]any        // as CL.THROTTLE takes it: max_burst, count, period
	interval   time.Duration // between two permits
	tolerance  time.Duration // for so many as can be taken at once
	limit      int64
}

func newCellMath(c cellLimit) cellMath {
	seconds := int64(c.Period / time.Second)
	r := cellMath{moduleArgs: [3]any{c.MaxBurst, c.Count, seconds}, limit: int64(c.MaxBurst) + 1}
	r.interval = time.Duration(float64(seconds) * 1e9 / float64(c.Count))
	r.tolerance = r.interval * time.Duration(r.limit)
	return r
}

// remaining is how many permits can be taken while the tolerance is above what is owed by room.
func (c cellMath) remainingAt(room time.Duration) int64 {
	if room <= -c.interval {
		return 0
	}
	switch permits := float64(room/time.Microsecond) / float64(c.interval/time.Microsecond); {
	case permits != permits:
		return 0
	case permits >= math.MaxInt64:
		return math.MaxInt64
	default:
		return int64(permits)
	}
}
