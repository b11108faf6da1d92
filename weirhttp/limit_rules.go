package weirhttp

import (
	"context"
	"net/http"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/stat"
)

// quotaKey is the key of a quota. The network is set where the key is empty.
type quotaKey struct {
	network netip.Addr
	key     string
}

// copied returns the key as it is stored: it may be a part of a long string.
func (k quotaKey) copied() quotaKey {
	k.key = strings.Clone(k.key)
	return k
}

// remoteKey returns the key as a Remote gets it.
func (k quotaKey) remoteKey() string {
	if k.key == "" {
		return anonymous(k.network.String())
	}
	return k.copied().key
}

// rules are a LimitConfig at work.
type rules struct {
	config LimitConfig
	quotas []*quota
	fields string // RateLimit-Policy of a request that all policies apply to; "" if a Remote is among them
}

// quota is a Policy at work. Its keys outlive a change of the configuration.
type quota struct {
	policy   Policy
	byIP     bool                 // Policy.By is ByIP, and the policy has no Remote
	field    string               // its item in RateLimit-Policy, unless it is a Remote
	each     float64              // nanoseconds per request
	keys     quotas[quotaKey]     // nil for a Remote
	networks quotas[netip.Prefix] // for keys without room, nil if they are not counted by network
}

func newRules(c LimitConfig, old *rules) (*rules, error) {
	s := &rules{config: c}
	s.config.Proxies.Trusted = slices.Clone(c.Proxies.Trusted)
	remotes := false
	for _, p := range c.Policies {
		q, err := newQuota(p, old.find(p))
		if err != nil {
			return nil, err
		}
		s.quotas = append(s.quotas, q)
		remotes = remotes || p.Remote != nil
		if !p.Shadow {
			s.fields = string(appendItem([]byte(s.fields), q.field))
		}
	}
	if remotes {
		s.fields = ""
	}
	return s, nil
}

// find returns the quota that can go on for the policy, or nil.
func (s *rules) find(p Policy) *quota {
	if s == nil || p.Remote != nil {
		return nil
	}
	for _, q := range s.quotas {
		if q.keys != nil && q.policy.goesOnAs(p) {
			return q
		}
	}
	return nil
}

// newQuota returns a quota that goes on with the keys of an old one, or begins with none.
func newQuota(p Policy, old *quota) (q *quota, err error) {
	q = &quota{policy: p}
	if p.Remote != nil {
		return q, nil
	}
	q.byIP = isByIP(p.By)
	n, in := p.terms()
	q.field, q.each = policyField(p.Name, n, in), float64(in)/float64(n)
	if old == nil {
		q.keys = newQuotas(p, p.Name, p.keys(), quotaKey.copied)
		if p.countsByNetwork() {
			q.networks = newQuotas(p, p.networkName(), max(p.keys()/networkShare, 1), func(p netip.Prefix) netip.Prefix { return p })
		}
		return q, nil
	}
	if old.networks != nil {
		if q.networks, err = old.networks.successor(p, p.networkName()); err != nil {
			return nil, err
		}
	}
	q.keys, err = old.keys.successor(p, p.Name)
	return q, err
}

func (p Policy) keys() int {
	if p.MaxKeys == 0 {
		return defaultKeys
	}
	return p.MaxKeys
}

func (s *rules) exempt(r *http.Request) bool { return s.config.Exempt != nil && s.config.Exempt(r) }

func (s *rules) cost(r *http.Request) int {
	if s.config.Cost == nil {
		return 1
	}
	return s.config.Cost(r)
}

// answers appends an answer, yet to be given, for each policy that applies to the request.
func (s *rules) answers(to []answer, r *http.Request, addr netip.Addr) []answer {
	for _, q := range s.quotas {
		if q.applies(r) {
			to = append(to, answer{quota: q, key: q.key(r, addr), addr: addr})
		}
	}
	return to
}

func (q *quota) applies(r *http.Request) bool { return q.policy.When == nil || q.policy.When(r) }

// isByIP reports whether a key function is ByIP itself, which is no closure, so that its code is all
// there is of it.
func isByIP(by func(*http.Request) string) bool {
	return reflect.ValueOf(by).Pointer() == reflect.ValueOf(ByIP).Pointer()
}

// key returns the key of a request. For ByIP it is the address itself, so that no text is made of it.
func (q *quota) key(r *http.Request, addr netip.Addr) quotaKey {
	home := network(addr)
	if q.byIP {
		return quotaKey{network: home}
	}
	switch key := q.policy.By(r); {
	case key == "", q.keys != nil && isText(key, home): // a function that does as ByIP does has the same keys
		return quotaKey{network: home}
	default:
		return quotaKey{key: bounded(key)}
	}
}

// isText reports whether a key is the text of an address.
func isText(key string, addr netip.Addr) bool {
	var room [64]byte
	return string(addr.AppendTo(room[:0])) == key
}

// charge takes n from the quota of a request, or what is left of it.
func (q *quota) charge(r *http.Request, addr netip.Addr, n int) {
	key := q.key(r, addr)
	switch {
	case n < 1:
	case q.keys == nil:
		chargeRemote(r, q.policy.Remote(key.remoteKey()), n)
	case !q.keys.drain(key, n) && q.networks != nil:
		q.networks.drain(networkOf(addr), n)
	}
}

// chargeRemote charges a remote limit, also if the client has gone away meanwhile. An error is no
// decision: then nothing is charged.
func chargeRemote(r *http.Request, limit limiter.Remote, n int) {
	ctx := context.WithoutCancel(r.Context())
	if taken, err := limit.Take(ctx, n); err == nil && !taken.OK && taken.Remaining > 0 {
		_, _ = limit.Take(ctx, min(n, taken.Remaining))
	}
}

// observe yields the statistics of the quota. It reports whether yield wants more.
func (q *quota) observe(yield func(*stat.Series, float64) bool) bool {
	if q.keys == nil {
		return true
	}
	for s, v := range q.keys.Observe {
		if !yield(s, v) {
			return false
		}
	}
	if q.networks == nil {
		return true
	}
	for s, v := range q.networks.Observe {
		if !yield(s, v) {
			return false
		}
	}
	return true
}

// reply is what one quota says to a request.
type reply struct {
	limiter.Result

	next time.Duration // how long until one more can be taken, if that is known
	room bool          // the key is remembered, or could be
}

// quotas are the quotas of a policy, one for each key.
type quotas[K comparable] interface {
	stat.Source

	// take takes n, all or none, and is counted in the statistics. If the policy is a shadow, the
	// reply is always OK.
	take(at time.Time, key K, n int) reply
	// ask is take that is not counted, and that no shadow hides.
	ask(at time.Time, key K, n int) reply
	// refund gives back n that were taken at the time.
	refund(at time.Time, key K, n int)
	// drain takes n, or what is left if that is less. It reports whether there was room for the key.
	drain(key K, n int) (room bool)
	// successor returns quotas for another policy that go on with the keys of these.
	successor(p Policy, name string) (quotas[K], error)
}

// newQuotas returns quotas that store what copied returns for a key.
func newQuotas[K comparable](p Policy, name string, maxKeys int, copied func(K) K) quotas[K] {
	if p.isWindow() {
		return newWindows(p, name, maxKeys, copied)
	}
	return newBuckets(p, name, maxKeys, copied)
}
