package weirhttp

import (
	"errors"
	"net/http"
)

// LimitConfig configures a [Limit]. It holds values and functions, and may be shared.
type LimitConfig struct {
	// Policies are the quotas. They hold together: a request is allowed by all policies that apply to
	// it, or counted by none. Default none.
	Policies []Policy
	// Exempt reports whether a request is neither limited nor counted. Default no request is.
	Exempt func(*http.Request) bool
	// Proxies says which proxies to believe about where a request comes from. Default none.
	Proxies Proxies
	// Cost returns what a request takes from each quota. A cost of 0 is free. A negative cost, or one
	// above what a policy allows at once, is always refused. Default 1.
	Cost func(*http.Request) int

	// CountRefused counts a request that one policy refuses in the quotas of the others too, so that a
	// client that keeps asking also uses up its long-term quotas. Default false.
	CountRefused bool
	// Legacy sets X-RateLimit-Limit, -Remaining and -Reset too, from the policy that has the least left.
	// Reset is the number of seconds until its quota is full again, also on a refusal. Default false.
	Legacy bool
	// Quiet leaves out RateLimit-Policy and RateLimit. Default false.
	Quiet bool

	// OnRefusal is called for each refusal, in the goroutine of the request: see LogRefusedRequests.
	// Default none.
	OnRefusal func(*http.Request, Refusal)
	// Answer answers a refused request, whose headers are set before. Default Refusal.WriteProblem.
	Answer func(http.ResponseWriter, *http.Request, Refusal)
}

// Validate returns an error that names every fault, or nil.
func (c LimitConfig) Validate() error {
	return errors.Join(c.Proxies.validate(), validatePolicies(c.Policies))
}
