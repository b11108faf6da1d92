package breaker

import (
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// clock turns times into offsets from an origin, which is the time at which its owner was made.
// But if the first time given lies before that one, the origin is the first time given: the
// owner may be a variable of a package that a test uses on a clock of its own. The same holds
// if it lies further away than an offset reaches.
type clock struct {
	epoch  time.Time     // when the owner was made
	origin time.Time     // if it is another one: never read before begun says so
	begun  atomic.Uint32 // unbegun, asMade or moved
	first  sync.Mutex    // held to begin
}

const (
	unbegun = iota // no time was given yet
	asMade         // the origin is epoch
	moved          // the origin is origin
)

// reach bounds offsets on both sides, at 146 years, so that the difference of any two is exact.
// A time beyond it is as stale, or as late, as can be.
const reach time.Duration = 1<<62 - 1

func bounded(d time.Duration) time.Duration { return min(max(d, -reach), reach) }

// now is at by the real clock.
func (c *clock) now() time.Duration {
	if c.begun.Load() == asMade {
		return time.Since(c.epoch)
	}
	return c.at(time.Now())
}

// at returns the offset of a time that a verb was given.
func (c *clock) at(t time.Time) time.Duration {
	if c.begun.Load() == unbegun {
		c.begin(t)
	}
	return c.seen(t)
}

// seen returns the offset of a time from which a reader looks. It is not the first one given.
func (c *clock) seen(t time.Time) time.Duration {
	if c.begun.Load() == moved {
		return bounded(t.Sub(c.origin))
	}
	return bounded(t.Sub(c.epoch))
}

// seenNow is seen by the real clock.
func (c *clock) seenNow() time.Duration {
	if c.begun.Load() == moved {
		return c.seen(time.Now())
	}
	return time.Since(c.epoch)
}

// reckons reports whether d, which has passed since epoch, is an offset.
func (c *clock) reckons(d time.Duration) bool {
	if c.begun.Load() == unbegun {
		c.begin(c.epoch.Add(d))
	}
	return c.begun.Load() == asMade
}

// date returns the time of an offset.
func (c *clock) date(at time.Duration) time.Time {
	if c.begun.Load() == moved {
		return c.origin.Add(at)
	}
	return c.epoch.Add(at)
}

// begin sets the origin by the first time given. A time that lies further back than an offset
// reaches is stale for any clock, such as the zero time: the next one is the first then.
func (c *clock) begin(t time.Time) {
	c.first.Lock()
	defer c.first.Unlock()
	switch d := t.Sub(c.epoch); {
	case c.begun.Load() != unbegun || d < -reach:
	case d >= 0 && d <= reach:
		c.begun.Store(asMade)
	default:
		c.origin = t
		c.begun.Store(moved)
	}
}

// unread stands for a time that has not been read from the clock, since nobody
// may need it.
const unread time.Duration = math.MinInt64

// read returns the offset, from the clock if need be.
func (c *clock) read(at time.Duration) time.Duration {
	if at == unread {
		return c.now()
	}
	return at
}
