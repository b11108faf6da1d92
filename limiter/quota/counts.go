package quota

import (
	"crypto/sha256"
	"math"
	"time"

	"github.com/weir-go/weir/limiter"
)

// keyID is the SHA-256 of a key. So the memory for a key does not depend on its length, and neither
// the memory nor the file has the key itself.
type keyID [sha256.Size]byte

func idOf(key string) keyID { return sha256.Sum256([]byte(key)) }

// counts is what all keys have used in one period. The callers of its methods hold a lock.
type counts struct {
	calendar calendar
	limit    int64
	maxKeys  int

	period span // zero before the first time is known
	keys   map[keyID]*usage
	dirty  map[keyID]*usage // the keys whose records must be written; nil without a file
	gone   []keyID          // keys whose records can be deleted, unless they are in use again
}

// usage is what one key has used.
type usage struct {
	used int64
	// durable is what the file says, or will say after the writes that are under way, at the least.
	durable int64
}

// maxUsed bounds the sum of debts, so that it does not overflow.
const maxUsed = math.MaxInt64 / 2

// advance begins the period of t, if it is later than the present one. fromClock says that t is
// what the clock shows now.
//
// An earlier t is charged to the present period: a clock that is set back must not give a quota
// twice. But if the clock is set back by more than a period, it was wrong before. The present
// period may then be years ahead, so what was used in it moves to the period of the clock.
func (c *counts) advance(t time.Time, fromClock bool) {
	if c.period.contains(t) {
		return
	}
	switch p := c.calendar.at(t); {
	case c.period == span{}:
		c.period = p
	case p.start.After(c.period.start):
		c.forgetAll()
		c.period = p
	case fromClock && p.end.Before(c.period.start):
		c.period = p
		for id, u := range c.keys {
			c.changed(id, u)
		}
	}
}

// changed notes that the record of a key has to be written.
func (c *counts) changed(id keyID, u *usage) {
	if c.dirty != nil {
		c.dirty[id] = u
	}
}

func (c *counts) forgetAll() {
	if c.dirty != nil {
		for id := range c.keys {
			c.gone = append(c.gone, id)
		}
		clear(c.dirty)
	}
	c.keys = map[keyID]*usage{}
}

func (c *counts) forget(id keyID) {
	delete(c.keys, id)
	if c.dirty != nil {
		delete(c.dirty, id)
		c.gone = append(c.gone, id)
	}
}

// take takes n tokens, or none if there are fewer. It returns the key's usage if it took any.
func (c *counts) take(id keyID, t time.Time, n int) (r limiter.Result, u *usage) {
	if r = c.peek(id, t, 0, n); !r.OK || n == 0 {
		return r, nil
	}
	u = c.add(id, int64(n))
	r.Remaining -= n
	r.ResetAfter = c.untilEnd(t)
	return r, u
}

// peek returns whether take would take n tokens after ahead others were taken, and what is left
// now. It takes nothing.
func (c *counts) peek(id keyID, t time.Time, ahead int64, n int) limiter.Result {
	used, untilEnd := ahead, c.untilEnd(t)
	u := c.keys[id]
	if u != nil {
		used += u.used
	}
	r := limiter.Result{Limit: int(c.limit), Remaining: int(max(c.limit-used, 0))}
	if used > 0 {
		r.ResetAfter = untilEnd
	}
	switch {
	case n < 0 || int64(n) > c.limit:
		r.RetryAfter = limiter.Never
	case int64(n) > c.limit-used: // also for 0 tokens, if there is a debt
		r.RetryAfter = untilEnd
	case u == nil && n > 0 && len(c.keys) >= c.maxKeys:
		r = limiter.Result{NoRoom: true, Limit: int(c.limit), RetryAfter: untilEnd}
	default:
		r.OK = true
	}
	return r
}

// untilEnd returns how long it takes from t until the next period begins. It is less than
// limiter.Never, also if t is centuries ago.
func (c *counts) untilEnd(t time.Time) time.Duration {
	return min(c.period.end.Sub(t), limiter.Never-1)
}

// add adds n to what the key has used, whether there is room for the key or not.
func (c *counts) add(id keyID, n int64) *usage {
	u := c.keys[id]
	if u == nil {
		u = &usage{}
		c.keys[id] = u
	}
	u.used += min(n, maxUsed-u.used)
	if u.used > u.durable {
		c.changed(id, u)
	}
	return u
}

// refund gives back n tokens that were taken at a time, unless that was in another period. It
// returns how many more than it has used the file says for the key then.
func (c *counts) refund(id keyID, taken time.Time, n int) (tooMany int64) {
	u := c.keys[id]
	if u == nil || !c.period.contains(taken) {
		return 0
	}
	if u.used -= min(int64(n), u.used); u.used == 0 {
		c.forget(id) // so that its room is free
	} else {
		c.changed(id, u)
	}
	return u.durable - u.used
}

// remaining returns how many tokens the key has left.
func (c *counts) remaining(id keyID) int64 {
	if u := c.keys[id]; u != nil {
		return max(c.limit-u.used, 0)
	}
	return c.limit
}
