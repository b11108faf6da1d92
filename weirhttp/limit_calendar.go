package weirhttp

import (
	"time"

	"github.com/weir-go/weir/internal/friend"
	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/limiter/quota"
	"github.com/weir-go/weir/stat"
)

// calendarTable is the table of a Policy with a Quota, which counts in the Quota.
type calendarTable struct{ group *quota.Group }

// textOf returns the key in the Quota. A text cannot be the key of an address.
func textOf(key quotaKey) string {
	if key.text == "" {
		return anonymous(key.addr.String())
	}
	return key.text
}

// replyOf returns the reply of a Quota in its present period. at was read before the decision: so a
// refund never gives a token back in a later period than the one in which it was taken.
func replyOf(at time.Time, r limiter.Result, start, end time.Time) reply {
	return reply{
		Result: r, next: max(end.Sub(at), 1), in: end.Sub(start),
		room: !r.NoRoom, taken: taken{at: at},
	}
}

func (c calendarTable) take(at time.Time, key quotaKey, n int) reply {
	r, start, end := c.group.Inside(friend.Key{}).Take(textOf(key), n)
	return replyOf(at, r, start, end)
}

func (c calendarTable) peek(at time.Time, key quotaKey, n int) reply {
	r, start, end := c.group.Inside(friend.Key{}).Peek(textOf(key), n)
	return replyOf(at, r, start, end)
}

func (c calendarTable) refund(taken taken, key quotaKey, n int) {
	c.group.Get(textOf(key)).Refund(taken.at, n)
}

func (c calendarTable) charge(key quotaKey, n int) (own bool) {
	return c.group.Inside(friend.Key{}).Charge(textOf(key), n)
}

// drain is called for keys without room only, which have no quota.
func (calendarTable) drain(quotaKey, int) (room bool) { return false }

func (c calendarTable) Busiest(n int) []limiter.BusyKey { return c.group.Busiest(n) }
func (c calendarTable) Forget(key quotaKey) bool        { return c.group.Forget(textOf(key)) }
func (c calendarTable) forgetAll()                      { c.group.Inside(friend.Key{}).ForgetAll() }

// Observe yields nothing, because the Quota is a stat.Source itself.
func (calendarTable) Observe(func(*stat.Series, float64) bool) {}

func (calendarTable) successor(p Policy, _ string) (keyTable, error) {
	return calendarTable{p.Quota}, nil
}
