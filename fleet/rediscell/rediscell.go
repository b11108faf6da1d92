// Package rediscell does what the command CL.THROTTLE of redis-cell does, with or without that
// module, and returns its five numbers.
//
//	// CL.THROTTLE reply:user:42 15 30 60
//	replies := fleet.NewLimiter("reply", fleet.Config{
//		Link: link, Limits: []fleet.Limit{rediscell.Limit(15, 30, time.Minute)}, OnOutage: fleet.FailOpen,
//	})
//	reply, err := rediscell.Throttle(ctx, replies, "user:42", 1)
//	fmt.Println(reply) // {false 16 15 -1 2}
//
// It is for programs that already use these numbers or pass them on. Other programs use the
// [fleet.Result] of Take, which has exact times and distinguishes "later" from "never".
package rediscell

import (
	"context"
	"time"

	"github.com/weir-go/weir/fleet"
	"github.com/weir-go/weir/fleet/internal/friend"
	"github.com/weir-go/weir/limiter"
)

// Limit returns the limit of CL.THROTTLE max_burst count period: count tokens per period, of which
// maxBurst+1 can be taken at once. maxBurst is from 0 to 2^40-1, count at least 1, and period whole
// seconds from 1s to 10 years.
//
// As the only limit of a [fleet.Limiter], it answers as redis-cell 0.4.0 and later does. If the
// server has the module, the module decides, and otherwise a script that does the same steps. Both
// store the same values, so one can continue where the other stopped. A key does not store its
// limit, so limiters of the same name share their keys even if these limits differ. Next to other
// limits, it stands for the [fleet.TokenBucket] of the same rate.
//
// It differs from redis-cell in three ways. A refusal never says to retry in 0 seconds, as
// redis-cell does for less than a millisecond. A request for 0 tokens is not stored. A key lives
// up to a millisecond longer than it is needed, where a key of redis-cell expires up to a
// millisecond too early.
//
// As in redis-cell, the interval between two tokens is cut to whole nanoseconds, so 3/s is a
// billionth too fast. What remains is computed in whole microseconds, which is unreliable if the
// interval is only a few microseconds. The times of a Result are exact if the script has decided,
// and whole seconds if the module has, whose refusals are therefore not remembered.
func Limit(maxBurst, count int, period time.Duration) fleet.Limit {
	return fleet.Inside(friend.Key{}).Cell(maxBurst, count, period)
}

// Reply has the five numbers of a reply of CL.THROTTLE, in their order.
type Reply struct {
	// Limited reports that the request was refused.
	Limited bool
	// Limit is the maximum number of tokens that can be taken at once: max_burst + 1.
	Limit int64
	// Remaining is how many tokens can be taken now.
	Remaining int64
	// RetryAfter is in seconds, at least 1 for a refusal. It is -1 if the request was allowed, or
	// can never be allowed.
	RetryAfter int64
	// ResetAfter is the time in seconds until Remaining equals Limit.
	ResetAfter int64
}

// Throttle takes n tokens of the key as [fleet.Limiter.Take] does, and returns the reply of
// CL.THROTTLE.
func Throttle(ctx context.Context, l *fleet.Limiter, key string, n int) (Reply, error) {
	r, err := l.Take(ctx, key, n)
	if err != nil {
		return Reply{}, err
	}
	return ReplyOf(r.Result), nil
}

// ReplyOf converts the result of a limiter. A fraction of a second counts as one second if it is at
// least a millisecond.
func ReplyOf(r limiter.Result) Reply {
	reply := Reply{Limited: !r.OK, Limit: int64(r.Limit), Remaining: int64(r.Remaining), RetryAfter: -1, ResetAfter: seconds(r.ResetAfter)}
	if !r.OK && r.RetryAfter != limiter.Never {
		reply.RetryAfter = max(seconds(r.RetryAfter), 1)
	}
	return reply
}

// seconds rounds d up to seconds if at least a millisecond is left over.
func seconds(d time.Duration) int64 {
	whole := int64(d / time.Second)
	if d%time.Second >= time.Millisecond {
		whole++
	}
	return whole
}
