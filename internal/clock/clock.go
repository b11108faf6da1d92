// Package clock turns times into offsets from an origin.
package clock

import (
	"math"
	"sync/atomic"
	"time"
)

// Clock turns times into offsets from an origin, which is the time at which its owner was made.
// But if the first time given lies before that one, the origin is the first time given: the
// owner may be a variable of a package that a test uses on a clock of its own. The same holds
// if it lies further away than an offset reaches.
//
// Set Epoch before the first use. All methods may be called from any number of goroutines.
type Clock struct {
	Epoch  time.Time                 // when the owner was made
	origin atomic.Pointer[time.Time] // nil until a time is given, then &Epoch or another time
}

// Reach bounds offsets on both sides, at 146 years, so that the difference of any two is exact.
// A time beyond it is as stale, or as late, as can be.
const Reach time.Duration = 1<<62 - 1

func bounded(d time.Duration) time.Duration { return min(max(d, -Reach), Reach) }

// AsMade reports whether a time was given and the origin is Epoch, so that time.Since(c.Epoch) is
// the same as c.Now().
func (c *Clock) AsMade() bool { return c.origin.Load() == &c.Epoch }

// Moved reports whether the origin is not Epoch.
func (c *Clock) Moved() bool { return c.start() != &c.Epoch }

// start returns the time of the offset 0.
func (c *Clock) start() *time.Time {
	if origin := c.origin.Load(); origin != nil {
		return origin
	}
	return &c.Epoch
}

// Now is At by the real clock.
func (c *Clock) Now() time.Duration {
	if c.AsMade() {
		return time.Since(c.Epoch)
	}
	return c.At(time.Now())
}

// At returns the offset of a time. The first call decides what the origin is.
func (c *Clock) At(t time.Time) time.Duration {
	if c.origin.Load() == nil {
		c.begin(t)
	}
	return c.Seen(t)
}

// Seen returns the offset of a time from which a reader looks. It does not decide what the origin
// is.
func (c *Clock) Seen(t time.Time) time.Duration { return bounded(t.Sub(*c.start())) }

// SeenNow is Seen by the real clock.
func (c *Clock) SeenNow() time.Duration {
	if c.Moved() {
		return c.Seen(time.Now())
	}
	return time.Since(c.Epoch)
}

// IsOffset reports whether d, which has passed since Epoch, is an offset.
func (c *Clock) IsOffset(d time.Duration) bool {
	if c.origin.Load() == nil {
		c.begin(c.Epoch.Add(d))
	}
	return c.AsMade()
}

// Date returns the time of an offset.
func (c *Clock) Date(at time.Duration) time.Time { return c.start().Add(at) }

// begin sets the origin by the first time given. A time that lies further back than an offset
// reaches is stale for any clock, such as the zero time: the next one is the first then.
func (c *Clock) begin(t time.Time) {
	switch d := t.Sub(c.Epoch); {
	case d < -Reach:
	case d >= 0 && d <= Reach:
		c.origin.CompareAndSwap(nil, &c.Epoch)
	default:
		first := t // of its own, so that only this case allocates
		c.origin.CompareAndSwap(nil, &first)
	}
}

// Unread stands for a time that has not been read from the clock, since nobody may need it.
const Unread time.Duration = math.MinInt64

// Read returns the offset, from the clock if it is Unread.
func (c *Clock) Read(at time.Duration) time.Duration {
	if at == Unread {
		return c.Now()
	}
	return at
}
