package fleet

import "errors"

// Shared is a limit that several keys have together, beside the limits that each key has by itself:
//
//	Limits: []fleet.Limit{
//		fleet.TokenBucket{Rate: limiter.PerSecond(10)},                                      // each user
//		fleet.Shared{By: tenantOf, Limit: fleet.TokenBucket{Rate: limiter.PerSecond(200)}},  // all users of a tenant
//		fleet.Shared{Limit: fleet.TokenBucket{Rate: limiter.PerSecond(1000)}},               // everybody
//	}
//
// A request is taken from all limits or from none. Where one server has all keys, one script decides.
// The servers of a Cluster or a Ring cannot decide together. There a request first looks whether the
// Shared limits would admit it, and then takes from all limits in their order: for each By that is
// one more round trip, and one in advance. When a limit refuses although it has been looked at, or
// fails, what those before it have granted is given back. So no limit ever admits more than it
// should. The price is on the strict side, and paid only by requests that come at the same time as
// one that is refused in that way:
//
//   - What a request has taken counts until it is given back. Another request may be refused for it,
//     and told to wait as if it had been used. A log or a window gives its oldest permits back, and
//     a full bucket loses what comes to it during the round trips.
//   - What cannot be given back, because its server fails just then, stays taken: the permits of one
//     request, until they return by themselves.
//
// A limit whose server is unavailable is decided by [Config].OnOutage, and the others by Redis.
//
// Reset does not forget what a Shared limit has counted. Refund gives back to all limits. A limiter
// with a Shared limit has no leases.
type Shared struct {
	// Limit is the limit of the keys together. Must be given, and not be a Shared.
	Limit Limit
	// By returns what stands for a key: keys for which it returns the same text share the limit. It
	// must always return the same for a key. Default: all keys share one limit.
	By func(key string) string
}

// everybody stands for all keys.
func allKeys(string) string { return "" }

// The scopes of terms. Those of other Shared limits follow.
const (
	scopeKey = iota
	scopeAllKeys
	firstCustomScope
)

func (s Shared) compile() (scopedLimit, error) {
	switch s.Limit.(type) {
	case nil:
		return scopedLimit{}, errors.New("fleet: Limit of a Shared is nil, must be given")
	case Shared:
		return scopedLimit{}, errors.New("fleet: Limit of a Shared is a Shared, must be a limit of another kind")
	}
	t, err := s.Limit.compile()
	if t.sharedBy, t.scope = s.By, firstCustomScope; s.By == nil {
		t.sharedBy, t.scope = allKeys, scopeAllKeys
	}
	return t, err
}
