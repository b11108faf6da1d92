package fleet_test

import (
	"github.com/weir-go/weir/fleet"
	"github.com/weir-go/weir/limiter"
)

// hourly is a bucket that is as good as never filled up again.
var hourly = fleet.TokenBucket{Rate: limiter.PerHour(1), Burst: 1}

// newLimiter makes a limiter of one limit.
func newLimiter(l *fleet.Link, name string, limit fleet.Limit, c fleet.Config) *fleet.Limiter {
	return newLimiters(l, name, c, limit)
}

// newLimiters makes a limiter of several limits.
func newLimiters(l *fleet.Link, name string, c fleet.Config, limits ...fleet.Limit) *fleet.Limiter {
	c.Link, c.Limits = l, limits
	return fleet.NewLimiter(name, c)
}
