package weirhttp

import (
	"errors"
	"net/http"
)

// LimitConfig configures a [Limit].
type LimitConfig struct {
	// Policies are the quotas. A request is taken from the quotas of all policies that apply to it,
	// or from none if one of them refuses it. Default none.
	Policies []Policy
	// Proxies are the proxies that are trusted to report the addresses of clients. Default none.
	Proxies Proxies
	// Cost returns how much a request takes from each quota. A request with cost 0 is free. A
	// request with a negative cost, or with a cost above the quota, is refused. Default 1.
	Cost func(*http.Request) int

	// CountRefused takes a request that one policy refuses from the quotas of the others, so that a
	// client that keeps asking also uses up its long-term quotas. Default false.
	CountRefused bool
	// Legacy adds X-RateLimit-Limit, X-RateLimit-Remaining and X-RateLimit-Reset for the policy
	// with the fewest remaining requests. Reset is the number of seconds until its quota is full
	// again. Default false.
	Legacy bool
	// Quiet omits RateLimit-Policy and RateLimit. Default false.
	Quiet bool

	// OnRefusal is called for each refusal, before Answer, unless the client disconnected during
	// the call of a Remote: see [LogRefusedRequests]. Default none.
	OnRefusal func(*http.Request, Refusal)
	// Answer writes the response of a refused request. The headers are already set: Retry-After
	// unless the request can never be allowed, and those about quotas as far as [Limit] says that
	// the response has them. Default Refusal.WriteProblem.
	Answer func(http.ResponseWriter, *http.Request, Refusal)
}

// Validate returns an error that names all invalid fields, or nil if there are none.
func (c LimitConfig) Validate() error {
	return errors.Join(c.Proxies.validate(), validatePolicies(c.Policies))
}
