// Package redisson has what Redisson's RRateLimiter does beyond a [fleet.SlidingLog]: a limit per
// client, and a rate that is set while the limiter is in use.
//
//	RRateLimiter                       here
//	trySetRate(OVERALL, 10, 1 min)     fleet.SlidingLog{Limit: 10, Window: time.Minute}
//	trySetRate(PER_CLIENT, 10, 1 min)  redisson.PerClient(fleet.SlidingLog{Limit: 10, Window: time.Minute}, "")
//	setRate                            redisson.SetRate
//	tryAcquire(n)                      Take(ctx, key, n)
//	tryAcquire(n, timeout)             Wait(ctx, key, n), with a ctx of that timeout
//	acquire(n)                         Wait(ctx, key, n)
//	availablePermits                   the Remaining of Take(ctx, key, 0)
//	release(n)                         Refund(ctx, n) of what Reserve(ctx, key, n) returned
//	delete                             Reset(ctx, key)
//
// The keys in Redis are not compatible with those of Redisson.
package redisson

import (
	"context"
	"time"

	"github.com/weir-go/weir/fleet"
	"github.com/weir-go/weir/fleet/internal/friend"
)

// PerClient returns a limit that applies to each client separately, as Redisson's PER_CLIENT. The
// client is the name of this process and must not contain braces. If it is empty, a random name is
// used.
func PerClient(log fleet.SlidingLog, client string) fleet.Limit {
	return fleet.Inside(friend.Key{}).PerClient(log, client)
}

// SetRate sets the limit and the window of a key for all nodes, whatever their configs say. The
// rate is kept until the key has not been used for a day, or for its window if that is longer.
// SetRate returns an error if the only limit of l is not a [fleet.SlidingLog] or a limit of
// PerClient.
//
// Tokens taken before still count. If the window becomes longer, tokens that have already left the
// shorter window may still be in the longer one. Nothing is allowed until they have left the longer
// one too. Tokens that were taken before the key was idle for the old window are not known any
// more.
func SetRate(ctx context.Context, l *fleet.Limiter, key string, limit int, window time.Duration) error {
	return fleet.Inside(friend.Key{}).SetRate(ctx, l, key, limit, window)
}
