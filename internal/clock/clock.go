// Package clock converts times to offsets from an origin.
package clock

import (
	"math"
	"sync/atomic"
	"time"
)

// Clock converts times to offsets from an origin: the time at which its owner was made, or the
// first time given, if that is earlier or more than MaxOffset later. An earlier first time is usual
// in tests: the owner is a package variable, and the test has a clock of its own.
//
// Set Epoch before the first use. All methods may be called from any number of goroutines.
type Clock struct {
	Epoch  time.Time                 // when the owner was made
	origin atomic.Pointer[time.Time] // nil until a time is given, then &Epoch or a different time
}

// MaxOffset bounds offsets in both directions. It is 146 years, so that the difference of two
// offsets never overflows. A time beyond it has the offset MaxOffset or -MaxOffset.
const MaxOffset time.Duration = 1<<62 - 1

// StartsAtEpoch reports whether the origin has been chosen and is Epoch. If so, Now returns
// time.Since(c.Epoch).
func (c *Clock) StartsAtEpoch() bool { return c.origin.Load() == &c.Epoch }

// Now returns the offset of the current time. Like At, it chooses the origin if none has been
// chosen.
func (c *Clock) Now() time.Duration {
	if c.origin.Load() == &c.Epoch {
		return time.Since(c.Epoch)
	}
	return c.At(time.Now())
}

// At returns the offset of a time. The first call chooses the origin.
func (c *Clock) At(t time.Time) time.Duration {
	origin := c.origin.Load()
	if origin == nil {
		c.chooseOrigin(t)
		origin = c.start()
	}
	return min(max(t.Sub(*origin), -MaxOffset), MaxOffset)
}

// Peek returns the offset of a time without choosing the origin. Code that only reads uses it.
func (c *Clock) Peek(t time.Time) time.Duration {
	return min(max(t.Sub(*c.start()), -MaxOffset), MaxOffset)
}

// PeekNow returns the offset of the current time without choosing the origin.
func (c *Clock) PeekNow() time.Duration {
	if c.start() != &c.Epoch {
		return c.Peek(time.Now())
	}
	return time.Since(c.Epoch)
}

// IsOffset reports whether the moment that is d after Epoch has the offset d. It chooses the origin
// as At does.
func (c *Clock) IsOffset(d time.Duration) bool {
	if c.origin.Load() == nil {
		c.chooseOrigin(c.Epoch.Add(d))
	}
	return c.StartsAtEpoch()
}

// TimeOf returns the time of an offset.
func (c *Clock) TimeOf(at time.Duration) time.Time { return c.start().Add(at) }

// Unread stands for the current time if the clock has not been read yet, because the time may not
// be needed.
const Unread time.Duration = math.MinInt64

// Read returns at, or Now if at is Unread.
func (c *Clock) Read(at time.Duration) time.Duration {
	if at == Unread {
		return c.Now()
	}
	return at
}

// start returns the origin, which is Epoch until it has been chosen.
func (c *Clock) start() *time.Time {
	if origin := c.origin.Load(); origin != nil {
		return origin
	}
	return &c.Epoch
}

// chooseOrigin chooses the origin by the first time given. A time more than MaxOffset before Epoch,
// such as the zero time, is stale for any clock, so it chooses nothing.
func (c *Clock) chooseOrigin(first time.Time) {
	switch d := first.Sub(c.Epoch); {
	case d < -MaxOffset:
	case d >= 0 && d <= MaxOffset:
		c.origin.CompareAndSwap(nil, &c.Epoch)
	default:
		other := first // a separate variable, so that only this case allocates
		c.origin.CompareAndSwap(nil, &other)
	}
}

// The tolerances of IsNew: for a time that the object has read from the clock, and for a time that
// its caller has given.
const (
	ReadTolerance  = time.Second
	GivenTolerance = time.Hour
)

// IsNew is the function IsNew for offsets of the clock. It is false while no origin has been
// chosen.
func (c *Clock) IsNew(at, latest, tolerance time.Duration) bool {
	origin := c.origin.Load()
	return origin != nil && IsNew(*origin, at, latest, tolerance)
}

// IsNew reports whether an object must start its times again, because the clock is another one than
// before: a package variable is used in a testing/synctest bubble after it was used outside, or in
// another bubble. Times are offsets from the epoch. at is the time of a request, and latest the
// latest time that the object was given, or an earlier one.
//
// A clock never goes back, so it is another clock if a reading that is made now is earlier than
// latest, by more than the tolerance. That at is earlier proves nothing: its caller may have been
// slow, or it may be the time of an event. So IsNew reads the clock, and only for an at that is too
// early. It also requires that at is about the time of the clock. Otherwise at is a time of a
// replay, whose times are not those of the clock.
func IsNew(epoch time.Time, at, latest, tolerance time.Duration) bool {
	if at >= latest-tolerance {
		return false
	}
	now := time.Since(epoch)
	return now < latest-tolerance && max(now-at, at-now) <= time.Minute
}
