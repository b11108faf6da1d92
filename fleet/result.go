package fleet

import "github.com/weir-go/weir/limiter"

// Result is what a limiter of a fleet answers: that of any limiter, and who decided.
type Result struct {
	limiter.Result
	From From // who decided
}

// From says who decided.
type From string

const (
	// FromServer is a decision of Redis.
	FromServer From = "server"
	// FromDenyCache is a refusal of this process, which remembers a refusal of Redis that still holds.
	FromDenyCache From = "deny cache"
	// FromLease is a decision of this process about tokens that it took from Redis before.
	FromLease From = "lease"
	// FromOutage is a decision of the policy for when Redis is unavailable: see [OnOutage].
	FromOutage From = "outage"
)
