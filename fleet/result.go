package fleet

import "github.com/weir-go/weir/limiter"

// Result is what a limiter of a fleet answers: that of any limiter, and who decided.
type Result struct {
	limiter.Result
	// From says who decided: "server" for Redis; "deny cache" for a refusal of this process, which
	// remembers a refusal of Redis that still holds; "lease" for a decision of this process about
	// permits that it took from Redis before; and "outage" for the policy while Redis is
	// unavailable: see [OnOutage].
	From string
}

// The values of Result.From.
const (
	fromServer    = "server"
	fromDenyCache = "deny cache"
	fromLease     = "lease"
	fromOutage    = "outage"
)
