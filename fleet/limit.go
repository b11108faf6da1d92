package fleet

import (
	"errors"
	"math"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weir-go/weir/limiter"
)

// Limit is one limit of a [Limiter]: a [TokenBucket], a [FixedWindow], a [SlidingWindow], a
// [SlidingLog], a [CalendarQuota], or a [Shared] limit made of one of these. Packages rediscell and
// redisson add one kind each.
type Limit interface {
	// compile returns the limit with its defaults filled in, or an error that names every invalid
	// field.
	compile() (limitSpec, error)
}

// limitSpec is a compiled limit.
type limitSpec struct {
	// script is the Lua file of this kind of limit, and args are its arguments.
	script string
	args   []any
	// keySuffixes are the ends of the Redis keys. The first key holds what was taken.
	keySuffixes []string
	// maxTake is the maximum number of tokens that one request can take.
	maxTake int
	// maxCharge is the maximum number of tokens that one settlement can take.
	maxCharge int
	// The long-run rate is events per span of length per.
	events float64
	per    time.Duration
	// cost is set for token buckets, and cell for CL.THROTTLE.
	cost tokenCost
	cell *cellLimit
	// periods adds arguments that depend on the time. It is set for calendar quotas.
	periods *periods

	// sharedBy is Shared.By or its default. It is nil for the limits of single keys.
	sharedBy func(key string) string
	// Limits with an equal scope count the same keys together.
	scope int
	// index is the position in Config.Limits.
	index int
}

// windowSpec returns the parts of a limitSpec that all windows have in common.
func windowSpec(script string, limit int, window time.Duration, args ...any) limitSpec {
	return limitSpec{
		script: script, args: append([]any{limit}, args...), keySuffixes: []string{""},
		maxTake: limit, maxCharge: math.MaxInt32, events: float64(limit), per: window,
	}
}

// tagFor returns the tag of the Redis keys in which the limit counts a request.
func (s limitSpec) tagFor(k requestKey) string {
	if s.sharedBy == nil {
		return k.tag
	}
	return keyTag(s.sharedBy(k.key))
}

// requestKey is the key of one request.
type requestKey struct {
	key, tag string
	waiter   *waiter // of a caller in Wait, otherwise nil
}

func newRequestKey(key string) requestKey { return requestKey{key: key, tag: keyTag(key)} }

// maxTakeOfAll returns the maximum number of tokens that one request can take from all limits.
func maxTakeOfAll(limits []limitSpec) int {
	least := math.MaxInt
	for _, s := range limits {
		least = min(least, s.maxTake)
	}
	return least
}

// maxChargeOfAll returns the maximum number of tokens that one settlement can take from all limits.
func maxChargeOfAll(limits []limitSpec) int {
	least := math.MaxInt
	for _, s := range limits {
		least = min(least, s.maxCharge)
	}
	return least
}

// namespace is the prefix of a limiter's Redis keys.
type namespace struct {
	link *Link
	name string
}

// keyBase returns the common beginning of all Redis keys with a tag.
func (ns namespace) keyBase(tag string) string {
	return ns.link.prefix + ns.name + ":{" + tag + "}"
}

// checkLength returns err, or an error if the reply does not have the expected number of values. A
// proxy or a module may answer anything.
func (ns namespace) checkLength(reply []int64, err error, want int) error {
	if err == nil && len(reply) != want {
		return ns.invalidReply()
	}
	return err
}

// invalidReply returns the error for a reply that no script of this package gives.
func (ns namespace) invalidReply() error { return ns.link.invalidReply() }

func (l *Link) invalidReply() error {
	return &StoreError{link: l.name, Fault: faultOther, cause: errInvalidReply}
}

var errInvalidReply = errors.New("fleet: the reply has numbers that are out of range")

// combineResults returns the result of several limits together. The policy for outages has decided
// if it has decided for one of them.
func combineResults(results []Result) Result {
	all := results[0]
	for _, r := range results[1:] {
		if all.OK == r.OK {
			all.NoRoom = all.NoRoom || r.NoRoom
		} else if all.OK {
			all.OK, all.NoRoom = false, r.NoRoom
		}
		all.Limit = min(all.Limit, r.Limit)
		all.Remaining = min(all.Remaining, r.Remaining)
		all.RetryAfter = max(all.RetryAfter, r.RetryAfter)
		all.ResetAfter = max(all.ResetAfter, r.ResetAfter)
		if r.From == fromOutage {
			all.From = fromOutage
		}
	}
	return all
}

// refuseNegative turns the result for 0 tokens into a refusal if n is negative.
func refuseNegative(r limiter.Result, n int) limiter.Result {
	if n < 0 {
		r.OK, r.RetryAfter = false, limiter.Never
	}
	return r
}

// combineFrom combines results that all have the same origin.
func combineFrom(from string, results []limiter.Result) Result {
	all := make([]Result, len(results))
	for i, r := range results {
		all[i] = Result{Result: r, From: from}
	}
	return combineResults(all)
}

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
