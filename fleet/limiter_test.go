package fleet_test

import (
	"time"

	"github.com/weir-go/weir/fleet"
	"github.com/weir-go/weir/limiter"
)

// hourlyBucket is a bucket that is not refilled during a test.
var hourlyBucket = fleet.TokenBucket{Rate: limiter.Per(1, time.Hour), Burst: 1}

// newLimiter returns a limiter with one limit.
func newLimiter(l *fleet.Link, name string, limit fleet.Limit, c fleet.Config) *fleet.Limiter {
	return newLimiters(l, name, c, limit)
}

// newLimiters returns a limiter with several limits.
func newLimiters(l *fleet.Link, name string, c fleet.Config, limits ...fleet.Limit) *fleet.Limiter {
	c.Link, c.Limits = l, limits
	return fleet.NewLimiter(name, c)
}
