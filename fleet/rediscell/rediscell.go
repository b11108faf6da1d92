// Package rediscell answers as the command CL.THROTTLE of redis-cell does: with five integers.
//
//	// CL.THROTTLE reply:user:42 15 30 60
//	replies := fleet.NewLimiter("reply", fleet.Config{
//		Link: link, Limits: []fleet.Limit{fleet.Cell{MaxBurst: 15, Count: 30, Period: time.Minute}}, OnOutage: fleet.FailOpen,
//	})
//	reply, err := rediscell.Throttle(ctx, replies, "user:42", 1)
//	fmt.Println(reply.Integers()) // [0 16 15 -1 2]
//
// It is for programs that read these numbers already, or hand them on. Others use the
// [fleet.Result] of Take, whose times are no whole seconds and which tells "later" from "never".
package rediscell

import (
	"context"
	"time"

	"github.com/weir-go/weir/fleet"
	"github.com/weir-go/weir/limiter"
)

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

// Integers returns the five numbers in the order of redis-cell.
func (r Reply) Integers() [5]int64 {
	limited := int64(0)
	if r.Limited {
		limited = 1
	}
	return [5]int64{limited, r.Limit, r.Remaining, r.RetryAfter, r.ResetAfter}
}

// seconds are the seconds of d, one more if whole milliseconds are left over.
func seconds(d time.Duration) int64 {
	whole := int64(d / time.Second)
	if d%time.Second >= time.Millisecond {
		whole++
	}
	return whole
}
