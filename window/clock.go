package window

import (
	"sync/atomic"
	"time"
)

// clock turns times into offsets from an origin: the time at which the window was made, or the
// first time that it is given, if that lies before. For the window may be a variable of a
// package that a test uses on a clock of its own. The same holds if the first time lies further
// away than an offset reaches.
type clock struct {
	epoch  time.Time                 // when the window was made
	origin atomic.Pointer[time.Time] // nil until a time is given
}

// reach bounds offsets on both sides, at 146 years, so that the difference of any two is exact.
const reach time.Duration = 1<<62 - 1

func bounded(d time.Duration) time.Duration { return min(max(d, -reach), reach) }

// now returns the offset of the real clock's time, at which something is counted.
func (c *clock) now() time.Duration {
	if origin := c.origin.Load(); origin != nil {
		return time.Since(*origin)
	}
	return c.at(time.Now())
}

// at returns the offset of a time at which something is counted.
func (c *clock) at(t time.Time) time.Duration {
	if c.origin.Load() == nil {
		c.begin(t)
	}
	return c.seen(t)
}

// seen returns the offset of a time from which a reader looks: it is not the first one given.
func (c *clock) seen(t time.Time) time.Duration { return bounded(t.Sub(c.start())) }

// seenNow is seen for the real clock's time.
func (c *clock) seenNow() time.Duration { return time.Since(c.start()) }

// start returns the time of the offset 0.
func (c *clock) start() time.Time {
	if origin := c.origin.Load(); origin != nil {
		return *origin
	}
	return c.epoch
}

// begin sets the origin by the first time given. A time that lies further back than an offset
// reaches is stale for any clock, such as the zero time: the next one is the first then.
func (c *clock) begin(t time.Time) {
	switch d := t.Sub(c.epoch); {
	case d < -reach:
	case d >= 0 && d <= reach:
		c.origin.CompareAndSwap(nil, &c.epoch)
	default:
		c.origin.CompareAndSwap(nil, &t)
	}
}
