package fleet

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weir-go/weir/limiter"
)

// Cell is the limit of a [Throttle], as CL.THROTTLE takes it.
type Cell struct {
	MaxBurst int           // how many can be taken at once on top of the first, from 0 to 2^40. Default: 0.
	Count    int           // how many come in a Period, from 1 on. Must be given.
	Period   time.Duration // whole seconds, from 1 s on. Must be given.
}

// Validate returns nil for a limit that makes sense, and otherwise an error that names all faults.
func (c Cell) Validate() error {
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

// Throttle answers as CL.THROTTLE of redis-cell 0.4.0 and later does, with the module or without it: where the server has it, it
// is asked, and otherwise a script does the same steps. The keys hold the same, so either can go on where the other stopped.
// Limits are not kept with a key, so Throttles of one name and several limits share their keys.
//
// In one thing its answers differ: a refusal never says to come back in 0 seconds, as redis-cell does of less than a millisecond.
// In two more the keys do: a request for 0 is not stored, and a key lives up to a millisecond longer than there is something
// owed, where redis-cell's die as much too early.
//
// As redis-cell's, its interval between two permits is cut to whole nanoseconds (3/s is a billionth too fast), and what remains
// is reckoned in whole microseconds, which is not to be relied on where an interval is shorter than a few. The times of a Result
// are exact where the script has answered, and whole seconds where the module has, whose refusals are not remembered for that
// reason. All methods are safe for concurrent use, and block: see Take.
type Throttle struct{ *core }

// NewThrottle makes a limiter. It panics as [NewTokenBucket] does.
func NewThrottle(l *Link, name string, limit Cell, c Config) *Throttle {
	k := newCore(l, name, c, limit)
	k.limit = limit.MaxBurst + 1
	k.store = &cellStore{cell: newCell(limit), core: k}
	k.away = newFallback(c, []rule{limit.rule()})
	return &Throttle{k}
}

// Reply is the answer of CL.THROTTLE, in its order.
type Reply struct {
	Limited    bool  // the request was refused
	Limit      int64 // the most that can be taken at once: MaxBurst + 1
	Remaining  int64 // how much can be taken right after this answer
	RetryAfter int64 // seconds, at least 1 for a refusal; -1 where the request was admitted, or never will be
	ResetAfter int64 // seconds until Remaining is Limit again
}

// Integers are the five numbers as redis-cell gives them.
func (r Reply) Integers() [5]int64 {
	limited := int64(0)
	if r.Limited {
		limited = 1
	}
	return [5]int64{limited, r.Limit, r.Remaining, r.RetryAfter, r.ResetAfter}
}

// Ask is Take with the answer of CL.THROTTLE.
func (t *Throttle) Ask(ctx context.Context, key string, n int) (Reply, error) {
	r, err := t.Take(ctx, key, n)
	return replyOf(r.Result), err
}

func replyOf(r limiter.Result) Reply {
	reply := Reply{Limited: !r.OK, Limit: int64(r.Limit), Remaining: int64(r.Remaining), RetryAfter: -1, ResetAfter: cellSeconds(r.ResetAfter)}
	if !r.OK && r.RetryAfter != limiter.Never {
		reply.RetryAfter = max(cellSeconds(r.RetryAfter), 1)
	}
	return reply
}

// cellSeconds are seconds, one more where whole milliseconds are left over.
func cellSeconds(d time.Duration) int64 {
	seconds := int64(d / time.Second)
	if d%time.Second >= time.Millisecond {
		seconds++
	}
	return seconds
}

// rule is for the policies alone: the scripts know of no such kind.
func (c Cell) rule() rule {
	return bucketRule{Bucket: Bucket{Rate: limiter.Per(float64(c.Count), c.Period), Burst: c.MaxBurst + 1}}
}
