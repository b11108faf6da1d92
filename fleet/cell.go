package fleet

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/weir-go/weir/limiter"
)

// Cell is the limit of redis-cell's CL.THROTTLE. As the only limit of a [Limiter] it answers as
// redis-cell 0.4.0 and later does, with the module or without it: a server that has the module is
// asked, and otherwise a script does the same steps. The keys hold the same, so either can go on
// where the other stopped. A limit is not kept with a key, so limiters of one name and several
// Cells share their keys. Package rediscell gives the answer as CL.THROTTLE's five integers. Among
// several limits a Cell stands for the [TokenBucket] of its rate.
//
// In one thing its answers differ: a refusal never says to come back in 0 seconds, as redis-cell
// does of less than a millisecond. In two more the keys do: a request for 0 is not stored, and a
// key lives up to a millisecond longer than there is something owed, where redis-cell's die as much
// too early.
//
// As in redis-cell, the interval between two permits is cut to whole nanoseconds (3/s is a
// billionth too fast), and what remains is reckoned in whole microseconds, which is not to be
// relied on where an interval is shorter than a few. The times of a Result are exact where the
// script has answered, and whole seconds where the module has, whose refusals are not remembered
// for that reason.
type Cell struct {
	MaxBurst int           // how many can be taken at once on top of the first, from 0 to 2^40. Default: 0.
	Count    int           // how many come in a Period, from 1 on. Must be given.
	Period   time.Duration // whole seconds, from 1 s on. Must be given.
}

func (c Cell) validate() error {
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

func (c Cell) validateInterval() error {
	interval := newCell(c).interval
	if interval == 0 {
		return fmt.Errorf("fleet: Count is %d, must be at most one a nanosecond, %d", c.Count, c.Period)
	}
	if float64(interval)*float64(c.MaxBurst+1) > float64(maxFill) {
		return fmt.Errorf("fleet: MaxBurst is %d, must be gathered within %s at %d in %s", c.MaxBurst, maxFill, c.Count, c.Period)
	}
	return nil
}

func (c Cell) compile() (term, error) {
	if err := c.validate(); err != nil {
		return term{}, err
	}
	bucket := TokenBucket{Rate: limiter.Per(float64(c.Count), c.Period), Burst: c.MaxBurst + 1}
	return term{rule: cellRule{Cell: c, bucketRule: bucket.rule()}}, nil
}

// cellRule is a Cell, and the bucket of its rate for the policies and among other limits.
type cellRule struct {
	Cell
	bucketRule
}

// cell is the arithmetic of redis-cell.
type cell struct {
	command   [3]any        // as CL.THROTTLE takes it: max_burst, count, period
	interval  time.Duration // between two permits
	tolerance time.Duration // for so many as can be taken at once
	limit     int64
}

func newCell(c Cell) cell {
	seconds := int64(c.Period / time.Second)
	r := cell{command: [3]any{c.MaxBurst, c.Count, seconds}, limit: int64(c.MaxBurst) + 1}
	r.interval = time.Duration(float64(seconds) * 1e9 / float64(c.Count))
	r.tolerance = r.interval * time.Duration(r.limit)
	return r
}

// remaining is how many permits can be taken while the tolerance is above what is owed by room.
func (c cell) remaining(room time.Duration) int64 {
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
