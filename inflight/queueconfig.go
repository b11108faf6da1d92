package inflight

import (
	"errors"
	"fmt"
	"time"
)

// Queue configures in which order callers wait, and for how long. The zero value serves them in
// order of arrival within their priority and tenant, for as long as their contexts allow.
//
// With a Target the queue is controlled by the time spent in it, as in CoDel (Nichols and Jacobson,
// Controlling Queue Delay, 2012), in the form for requests by Maurer (Fail at Scale, 2015). The
// queue becomes overloaded if, for an Interval, every caller that got a slot would have waited for
// longer than Target in order of arrival. It stays overloaded until there has been no waiter for
// the time Target. In an overloaded queue callers wait for at most Target. Otherwise they wait for
// at most Interval, so a burst is served whole. For two Intervals after an overload, a quarter of
// an Interval is enough for the next overload.
//
// The newest caller of a tenant is served first while the queue is overloaded, and while the oldest
// caller of the tenant has waited for more than three times Target. The client behind the newest
// caller is the least likely to have given up. So most answers at the beginning of an overload come
// as soon as those later in the overload.
//
// Shares says how free slots are divided between the priorities that have waiters, and TenantWeight
// how those of a priority are divided between its tenants. A tenant that has just got its part
// waits for the others even if it had no waiter meanwhile. This is forgotten when no caller has
// waited for a second, and while there are more than 1,000 such tenants in a priority. If the queue
// is full, a caller of the lowest priority leaves it: a retry if there is one, otherwise a caller
// of the tenant with the longest queue relative to its weight.
type Queue struct {
	// Target is the longest wait in an overloaded queue, up to 1h. Default 0, no bound.
	Target time.Duration
	// Interval is the longest wait otherwise, and the time after which waits longer than Target are
	// an overload, from Target up to 1h. Default 20 times Target, as in CoDel with its 5ms and
	// 100ms, but at most 1h.
	Interval time.Duration
	// OldestFirst serves callers always in order of arrival. Default false.
	OldestFirst bool
	// Shares are the parts of the free slots that each priority gets while all of them wait, from
	// 1e-6 to 1e6. Only their ratios matter. Default 8, 4, 2 and 1, from Critical to Background.
	Shares map[Priority]float64
	// TenantWeight returns how many slots a tenant gets compared with others, from 1e-6 to 1e6. A
	// result outside counts as 1. It is called for each caller that has to wait or is refused. The
	// weight of a tenant is that of its last caller. Default 1 for all.
	TenantWeight func(tenant string) float64
}

const longestWait = time.Hour

func (c Queue) validate() error {
	var errs []error
	fault := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("inflight: Queue."+format, args...))
	}
	if c.Target < 0 || c.Target > longestWait {
		fault("Target is %v, must be between 0 and %v", c.Target, longestWait)
	}
	switch {
	case c.Interval == 0:
	case c.Target == 0:
		fault("Interval is %v without a Target, must be 0", c.Interval)
	case c.Interval < c.Target || c.Interval > longestWait:
		fault("Interval is %v, must be between Target %v and %v", c.Interval, c.Target, longestWait)
	}
	for p, share := range c.Shares {
		if p < Background || p > Critical {
			fault("Shares has the priority %d, must be between %d and %d", int8(p), Background, Critical)
		}
		if !isValidWeight(share) {
			fault("Shares of %v is %v, must be between 1e-6 and 1e6", p, share)
		}
	}
	return errors.Join(errs...)
}

func isValidWeight(w float64) bool { return w >= 1e-6 && w <= 1e6 }

func (c Queue) targetLimit() waitLimit { return waitLimit{c.Target, "Target"} }

// interval returns the Interval or its default, 0 without a Target.
func (c Queue) interval() time.Duration {
	if c.Interval != 0 {
		return c.Interval
	}
	return min(20*c.Target, longestWait)
}

// classShare returns the share of a class.
func (c Queue) classShare(class int) float64 {
	if share, ok := c.Shares[Critical-Priority(class)]; ok {
		return share
	}
	return float64(int(1) << (priorities - 1 - class))
}

func (c Queue) tenantWeight(tenant string) float64 {
	if c.TenantWeight != nil {
		if w := c.TenantWeight(tenant); isValidWeight(w) {
			return w
		}
	}
	return 1
}
