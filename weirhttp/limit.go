package weirhttp

import (
	"errors"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/stat"
)

// Limit is middleware that refuses requests beyond a quota with status 429:
//
//	limit := weirhttp.NewLimit(weirhttp.LimitConfig{Policies: []weirhttp.Policy{
//		{Name: "second", Rate: limiter.PerSecond(10), Burst: 20, By: weirhttp.ByIP},
//		{Name: "day", Limit: 10_000, Window: 24 * time.Hour, By: weirhttp.ByIP},
//	}})
//	server := &http.Server{Addr: ":8080", Handler: limit.Handler(mux), ReadHeaderTimeout: 5 * time.Second}
//
// A refusal has a body of type application/problem+json that names the policies. It has
// Retry-After, in whole seconds and at least 1, unless the request can never be allowed because of
// its cost.
//
// Unless LimitConfig.Quiet is set, responses have RateLimit-Policy and RateLimit, as in
// draft-ietf-httpapi-ratelimit-headers-10 and -11. They have an item for each policy that has
// decided about the request and is not a shadow. An item has the policy's quota q and window w, the
// number r of requests of cost 1 that the client can make now, and a time t in seconds. A client
// that makes r requests per t, evenly spread, is not refused by the policy unless other clients
// have the same key. Of a Quota, w is the length of the present period and t the time until its
// end. If r is 0, the next request can be made after t. In a refusal only the policies that refused
// have a time, and only if they can ever allow the request. An item of a Remote has no window, and
// a time only if the Remote refused. A Remote has no item if its Result has no Limit. If a Remote
// came to no decision, there are no such headers.
//
// A Limit has bounded memory: at most MaxKeys keys per policy, and a quarter as many networks (see
// Policy.ShareNew). It is a [stat.Source] with metrics per policy, not per key. All methods are
// safe for concurrent use. They do not block unless a policy has a Remote. The zero value does not
// work: use NewLimit.
type Limit struct {
	mu    sync.Mutex // held by Reconfigure
	rules atomic.Pointer[rules]
	set   policyNumbers
}

// NewLimit returns a limit with full quotas. It panics with the error of c.Validate if c is
// invalid.
func NewLimit(c LimitConfig) *Limit {
	l := &Limit{}
	if err := l.Reconfigure(c); err != nil {
		panic(err)
	}
	return l
}

// Reconfigure replaces the whole config. A policy with the same Name, form, Window, MaxKeys and
// ShareNew as one before keeps the quotas of its keys. Its metrics continue unless Shadow has
// changed. All other policies start with full quotas. If c is invalid, Reconfigure returns the
// error and changes nothing.
func (l *Limit) Reconfigure(c LimitConfig) error {
	if err := c.Validate(); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	next, err := newRules(c, l.rules.Load())
	if err == nil {
		l.rules.Store(next)
		l.set.changeAll()
	}
	return err
}

// Handler returns a handler that calls next for the requests within the quotas. Several handlers of
// one Limit share its quotas. next gets the ResponseWriter of the server, so streams, upgrades and
// [http.ResponseController] work.
func (l *Limit) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rules := l.rules.Load()
		inner, addr := rules.config.Proxies.withClientAddr(r)
		defer copyBack(r, inner) // also if a function of the user or the handler panics
		var buf [4]answer        // enough for most configs, so that the answers are on the stack
		d := decision{cost: rules.cost(inner), answers: rules.answers(buf[:0], inner, addr)}
		err := d.decide(r.Context(), rules.config.CountRefused)
		if err == nil {
			rules.writeHeaders(w.Header(), &d)
		}
		d.warnNoRoom(r.Context())
		if err != nil || d.refused() {
			rules.refuse(w, inner, &d, err)
			return
		}
		next.ServeHTTP(w, inner)
	})
}

// Charge takes n more from the quotas of a request. Use it for costs beyond LimitConfig.Cost, or
// for failed logins, so that few passwords can be tried. r is the request that the handler behind
// the limit got.
//
// If a quota has less than n, the rest is a debt. A Rate pays it before further requests are
// allowed. Beyond a Limit it counts for one Window, as requests do, and beyond a Quota in the
// present period. A key stays stored until its debt is paid, so do not charge a large number to use
// up a quota. A quota that keys without room share, and a Remote without the method Charge that
// [limiter.Remote] describes, have no debts: they are charged for what is left. An n below 1 does
// nothing.
func (l *Limit) Charge(r *http.Request, n int) {
	rules := l.rules.Load()
	inner, addr := rules.config.Proxies.withClientAddr(r)
	defer copyBack(r, inner)
	for _, q := range rules.quotas {
		if q.applies(inner) {
			q.charge(inner, addr, n)
		}
	}
}

// refuse answers a request that was refused, or about which no decision was made because of err.
func (s *rules) refuse(w http.ResponseWriter, r *http.Request, d *decision, err error) {
	refusal := Refusal{Status: http.StatusTooManyRequests, RetryAfter: d.retryAfter(), Err: err}
	if err != nil {
		refusal.Status = http.StatusServiceUnavailable
	}
	for i := range d.answers {
		if a := &d.answers[i]; a.refused() {
			refusal.Policies = append(refusal.Policies, a.quota.policy.Name)
			if refusal.Err == nil {
				refusal.Err = a.noRoom()
			}
		}
	}
	refusal.answer(w, r, s.config.OnRefusal, s.config.Answer)
}

// Observe yields the metrics of each policy, as [limiter.Group] does. Requests that are counted by
// network (see Policy.ShareNew) have the policy's name with " by network" appended. A policy with a
// Quota or a Remote has no metrics here.
func (l *Limit) Observe(yield func(*stat.Series, float64) bool) {
	for _, q := range l.rules.Load().quotas {
		if !q.observe(yield) {
			return
		}
	}
}

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

// rules are a LimitConfig in use. They do not change.
type rules struct {
	config LimitConfig
	quotas []*policyInUse
}

// newRules returns the rules of a config. Policies that are the same as in old keep their quotas.
func newRules(c LimitConfig, old *rules) (*rules, error) {
	s := &rules{config: c}
	s.config.Proxies.Trusted = slices.Clone(c.Proxies.Trusted)
	for _, p := range c.Policies {
		q, err := newQuota(p, old.find(p))
		if err != nil {
			return nil, err
		}
		s.quotas = append(s.quotas, q)
	}
	return s, nil
}

// find returns the quota whose keys a policy can keep, or nil.
func (s *rules) find(p Policy) *policyInUse {
	if s == nil || p.Remote != nil || p.Quota != nil {
		return nil
	}
	for _, q := range s.quotas {
		if q.keys != nil && q.policy.keepsKeysIn(p) {
			return q
		}
	}
	return nil
}

func (s *rules) cost(r *http.Request) int {
	if s.config.Cost == nil {
		return 1
	}
	return s.config.Cost(r)
}

// answers appends an empty answer for each policy that applies to the request.
func (s *rules) answers(to []answer, r *http.Request, addr netip.Addr) []answer {
	for _, q := range s.quotas {
		if q.applies(r) {
			to = append(to, answer{quota: q, table: q.keys, key: q.key(r, addr), addr: addr})
		}
	}
	return to
}

// Busiest returns, for each policy, up to n of the keys that it has refused most often, with the
// most refused key first. Clients that are counted by network (see Policy.ShareNew) follow, under
// the name of the policy with " by network" appended. The keys of a policy with a Quota are those
// of its Busiest, and those of a policy with a Remote are those that the Remote has refused.
// Counting costs nothing for allowed requests. See [limiter.BusyKey] for the bounds of the counts,
// and Policy.ShowKeys for what is shown of a key.
func (l *Limit) Busiest(n int) (keys []limiter.BusyKey) {
	for _, q := range l.rules.Load().quotas {
		keys = append(keys, q.busiest(n)...)
	}
	return keys
}

// busiest returns the keys of Busiest of one policy.
func (q *policyInUse) busiest(n int) (keys []limiter.BusyKey) {
	for _, k := range q.refusals.Busiest(q.policy.Name, n) {
		keys = append(keys, limiter.BusyKey(k))
	}
	if q.keys != nil {
		keys = append(keys, q.keys.Busiest(n)...)
	}
	if q.networks != nil {
		keys = append(keys, q.networks.Busiest(n)...)
	}
	return keys
}

// Busiest implements keyTable.
func (w *windowTable) Busiest(n int) (keys []limiter.BusyKey) {
	for _, k := range w.refusals.Busiest(w.requests.Name(), n) {
		keys = append(keys, limiter.BusyKey(k))
	}
	return keys
}
