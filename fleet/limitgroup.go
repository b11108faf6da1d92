package fleet

import (
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weir-go/weir/limiter"
)

// limitGroup holds limits whose keys are on one server, so that one script can decide about them.
type limitGroup struct {
	limits  []limitSpec
	script  *scriptBackend // can peek, and refund with an age per limit
	backend backend
	outage  fallback
}

func newLimitGroup(ns namespace, c Config, limits []limitSpec, noRoom *metric) *limitGroup {
	s := newScriptBackend(ns, limits)
	return &limitGroup{limits: limits, script: s, backend: newBackend(s), outage: newFallback(c, limits, noRoom)}
}

// groupLimits groups limits by the server of their keys, in the order of the config. A plain client
// has one server. With any other client, only limits of the same scope are known to be on the same
// server.
func groupLimits(ns namespace, c Config, limits []limitSpec, noRoom *metric) (groups []*limitGroup) {
	if _, single := ns.link.client.(*redis.Client); single {
		return []*limitGroup{newLimitGroup(ns, c, limits, noRoom)}
	}
	var scopes [][]limitSpec
	for _, limit := range limits {
		i := slices.IndexFunc(scopes, func(s []limitSpec) bool { return s[0].scope == limit.scope })
		if i < 0 {
			scopes = append(scopes, []limitSpec{limit})
		} else {
			scopes[i] = append(scopes[i], limit)
		}
	}
	for _, scope := range scopes {
		groups = append(groups, newLimitGroup(ns, c, scope, noRoom))
	}
	return groups
}

// refundAges returns, for each limit, the age to use when n tokens are given back. The tokens were
// taken age ago, with these results.
//
// A log or a window needs the true age. A bucket needs the time for which it has been full since
// then, because only tokens that arrived while it was full were lost.
func (g *limitGroup) refundAges(results []limiter.Result, n int, age time.Duration) []time.Duration {
	ages := make([]time.Duration, len(g.limits))
	for i, limit := range g.limits {
		ages[i] = age
		if limit.cost != (tokenCost{}) {
			fullIn := results[i].ResetAfter - limit.cost.times(n) // if nothing had been taken
			ages[i] = min(max(age-max(fullIn, 0), 0), age)
		}
	}
	return ages
}
