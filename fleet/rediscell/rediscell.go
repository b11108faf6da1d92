// Package rediscell does what the command CL.THROTTLE of redis-cell does, with the module or without
// it, and answers with its five numbers.
//
//	// CL.THROTTLE reply:user:42 15 30 60
//	replies := fleet.NewLimiter("reply", fleet.Config{
//		Link: link, Limits: []fleet.Limit{rediscell.Limit(15, 30, time.Minute)}, OnOutage: fleet.FailOpen,
//	})
//	reply, err := rediscell.Throttle(ctx, replies, "user:42", 1)
//	fmt.Println(reply) // {false 16 15 -1 2}
//
// It is for programs that read these numbers already, or hand them on. Others use the
// [fleet.Result] of Take, whose times are no whole seconds and which tells "later" from "never".
package rediscell

import (
	"context"
	"time"

	"github.com/weir-go/weir/fleet"
	"github.com/weir-go/weir/fleet/internal/bridge"
	"github.com/weir-go/weir/limiter"
)

// Limit returns the limit of CL.THROTTLE max_burst count period: count come in a period, of which
// maxBurst can be taken at once on top of the first. maxBurst lies between 0 and 2^40, count is at least
// 1, and period is whole seconds.
//
// As the only limit of a [fleet.Limiter] it answers as redis-cell 0.4.0 and later does: a server that
// has the module is asked, and otherwise a script does the same steps. The keys hold the same, so
// either can go on where the other stopped. A limit is not kept with a key, so limiters of one name
// and several such limits share their keys. Among several limits it stands for the [fleet.TokenBucket]
// of its rate.
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
func Limit(maxBurst, count int, period time.Duration) fleet.Limit {
	return bridge.Cell(maxBurst, count, period).(fleet.Limit)
}

// Reply is the answer of CL.THROTTLE, in its order.
type Reply struct {
	Limited    bool  // the request was refused
	Limit      int64 // the most that can be taken at once: max_burst + 1
	Remaining  int64 // how much can be taken right after this answer
	RetryAfter int64 // seconds, at least 1 for a refusal; -1 if the request was admitted, or never will be
	ResetAfter int64 // seconds until Remaining is Limit again
}

// Throttle takes n permits of the key as [fleet.Limiter.Take] does, and returns the answer of
// CL.THROTTLE.
func Throttle(ctx context.Context, l *fleet.Limiter, key string, n int) (Reply, error) {
	r, err := l.Take(ctx, key, n)
	if err != nil {
		return Reply{}, err
	}
	return ReplyOf(r.Result), nil
}

// ReplyOf returns a limiter's result as CL.THROTTLE's answer. Fractions of a second count as one
// from a millisecond on.
func ReplyOf(r limiter.Result) Reply {
	reply := Reply{Limited: !r.OK, Limit: int64(r.Limit), Remaining: int64(r.Remaining), RetryAfter: -1, ResetAfter: seconds(r.ResetAfter)}
	if !r.OK && r.RetryAfter != limiter.Never {
		reply.RetryAfter = max(seconds(r.RetryAfter), 1)
	}
	return reply
}

// seconds are the seconds of d, one more if whole milliseconds are left over.
func seconds(d time.Duration) int64 {
	whole := int64(d / time.Second)
	if d%time.Second >= time.Millisecond {
		whole++
	}
	return whole
}
