package fleet

import "errors"

// Shared is a limit for several keys together, next to the limits of each key:
//
//	Limits: []fleet.Limit{
//		fleet.TokenBucket{Rate: limiter.PerSecond(10)},                                      // each user
//		fleet.Shared{By: tenantOf, Limit: fleet.TokenBucket{Rate: limiter.PerSecond(200)}},  // all users of a tenant
//		fleet.Shared{Limit: fleet.TokenBucket{Rate: limiter.PerSecond(1000)}},               // all users
//	}
//
// A request takes from all limits or from none. If one server has all keys, one script decides.
//
// The servers of a Cluster or a Ring cannot decide together. There a request first checks whether
// the Shared limits would allow it, and then takes from all limits in their order. That costs two
// more round trips for each different By, the default included. If a limit refuses or fails
// although its check succeeded, the limits before it get their tokens back. No limit is ever
// exceeded, but a request that comes at the same time may be refused too strictly:
//
//   - Tokens count until they are given back. Another request may be refused meanwhile, and told
//     to wait as if they had been used. A log or a window gives its oldest tokens back, and a full
//     bucket loses the tokens that arrive during the round trips.
//   - Tokens that cannot be given back, because their server fails at that moment, stay taken
//     until they return by themselves: those of one request at most.
//
// While the server of a limit is unavailable, [Config].OnOutage decides about that limit, and Redis
// about the others.
//
// Reset does not clear Shared limits. Refund gives tokens back to all limits. A limiter with a
// Shared limit has no leases.
type Shared struct {
	// Limit is the limit of all keys together. It must not be a Shared. Required.
	Limit Limit
	// By returns the name of the limit that a key counts against: keys with the same result share
	// one limit. It must always return the same result for a key. Default one limit for all
	// keys.
	By func(key string) string
}

// Scopes of limits. Each Shared limit with a By has a scope of its own, from scopeFirstBy on.
const (
	scopeKey = iota
	scopeAllKeys
	scopeFirstBy
)

func (s Shared) compile() (limitSpec, error) {
	switch s.Limit.(type) {
	case nil:
		return limitSpec{}, errors.New("fleet: Limit of a Shared is nil, must be given")
	case Shared:
		return limitSpec{}, errors.New("fleet: Limit of a Shared is a Shared, must be a limit of another kind")
	}
	spec, err := s.Limit.compile()
	if spec.sharedBy, spec.scope = s.By, scopeFirstBy; s.By == nil {
		spec.sharedBy, spec.scope = func(string) string { return "" }, scopeAllKeys
	}
	return spec, err
}
