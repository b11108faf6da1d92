package fleet

import "github.com/weir-go/weir/limiter"

// Result is the answer of a [Limiter].
type Result struct {
	limiter.Result
	// From says who decided:
	//
	//   - "server": Redis.
	//   - "deny cache": this process. It repeats a refusal by Redis that still holds.
	//   - "lease": this process. It uses a token that it took from Redis in advance.
	//   - "outage": the policy [OnOutage], because Redis is unavailable.
	From string
}

// Values of Result.From.
const (
	fromServer    = "server"
	fromDenyCache = "deny cache"
	fromLease     = "lease"
	fromOutage    = "outage"
)
