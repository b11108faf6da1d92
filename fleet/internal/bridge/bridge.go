// Package bridge gives packages rediscell and redisson access to unexported parts of package fleet,
// which sets the functions.
package bridge

import (
	"context"
	"time"
)

var (
	// Cell returns the fleet.Limit of CL.THROTTLE.
	Cell func(maxBurst, count int, period time.Duration) any
	// PerClient returns the fleet.Limit that applies a fleet.SlidingLog to each client.
	PerClient func(log any, client string) any
	// SetRate sets the rate of a key of a *fleet.Limiter.
	SetRate func(ctx context.Context, l any, key string, limit int, window time.Duration) error
)
