package weirhttp

import (
	"crypto/sha256"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/weir-go/weir/limiter"
)

// maxWord is how long a client's key or a route may be and still be kept as it is.
const maxWord = 64

// sender is what a request is known by.
type sender struct {
	addr   netip.Addr
	client string
	route  string
}

// quotaKey is whose quota it is: of sender, what Policy.By names.
type quotaKey struct {
	network netip.Addr
	client  string
	route   string
}

// rules are a LimitConfig at work.
type rules struct {
	config LimitConfig
	exempt selection
	quotas []*quota
	fields string // RateLimit-Policy of a request that falls under all
}

// quota is a Policy at work. Its keys outlive a change of the configuration.
type quota struct {
	policy       Policy
	only, except selection
	field        string // its item in RateLimit-Policy
	keys         *limiter.NamedGroup[quotaKey]
	networks     *limiter.NamedGroup[netip.Prefix] // for keys without room, nil if they are not counted by network
}

func newRules(c LimitConfig, old *rules) (*rules, error) {
	s := &rules{config: c, exempt: newSelection(c.Exempt)}
	s.config.Proxies.Trusted = slices.Clone(c.Proxies.Trusted)
	if c.Route == nil {
		s.config.Route = pattern
		if c.usesRoutes() {
			s.config.Route = patternOrLog("a Limit")
		}
	}
	for _, p := range c.Policies {
		q := &quota{policy: p, only: newSelection(p.Only), except: newSelection(p.Except), field: policyField(p)}
		if err := q.goOn(old.find(p)); err != nil {
			return nil, err
		}
		s.quotas = append(s.quotas, q)
		if !p.Shadow {
			s.fields = string(appendItem([]byte(s.fields), q.field))
		}
	}
	return s, nil
}

// find returns the quota that can go on for the policy, and nil where there is none.
func (s *rules) find(p Policy) *quota {
	if s == nil {
		return nil
	}
	for _, q := range s.quotas {
		if q.policy.Name == p.Name && q.policy.sameKeys(p) {
			return q
		}
	}
	return nil
}

// goOn takes over the keys of a quota that was there before, or begins with none.
func (q *quota) goOn(old *quota) error {
	named := limiter.NamedConfig{Shadow: q.policy.Shadow}
	if old == nil {
		q.keys, q.networks = limiter.NewNamedGroup(q.policy.Name, limiter.NewGroup(q.policy.group()), named), q.policy.newNetworks()
		return nil
	}
	if q.keys, q.networks = old.keys, old.networks; q.policy.Shadow != old.policy.Shadow {
		q.keys = limiter.NewNamedGroup(q.policy.Name, old.keys.Group(), named)
		if q.networks != nil {
			q.networks = limiter.NewNamedGroup(q.policy.networkName(), old.networks.Group(), named)
		}
	}
	if q.policy.tier() == old.policy.tier() {
		return nil
	}
	if q.networks != nil {
		if err := q.networks.Group().SetTier(-1, q.policy.tier()); err != nil {
			return err
		}
	}
	return q.keys.Group().SetTier(-1, q.policy.tier())
}

func (s *rules) sender(r *http.Request) sender {
	who := sender{addr: s.config.Proxies.ClientIP(r), route: s.config.Route(r)}
	if s.config.Client != nil {
		who.client = s.config.Client(r)
	}
	return who
}

func (s *rules) cost(r *http.Request) int {
	if s.config.Cost == nil {
		return 1
	}
	return s.config.Cost(r)
}

func (q *quota) applies(who *sender) bool {
	return (len(q.only) == 0 || q.only.has(who)) && !q.except.has(who)
}

func (q *quota) key(who *sender) (k quotaKey) {
	by := q.policy.By
	if by&ByIP != 0 || by&ByClient != 0 && who.client == "" {
		k.network = network(who.addr)
	}
	if by&ByClient != 0 {
		k.client = bounded(who.client)
	}
	if by&ByRoute != 0 {
		k.route = bounded(who.route)
	}
	return k
}

// bounded is what of a word is kept: a copy, since it may be a part of something large.
func bounded(word string) string {
	if len(word) <= maxWord {
		return strings.Clone(word)
	}
	sum := sha256.Sum256([]byte(word))
	return string(sum[:])
}

// look appends what each quota that the request falls under would say.
func (s *rules) look(to []answer, at time.Time, who *sender, cost int) []answer {
	for _, q := range s.quotas {
		if q.applies(who) {
			a := answer{quota: q, key: q.key(who), addr: who.addr}
			a.look(at, cost)
			to = append(to, a)
		}
	}
	return to
}

// charge takes n from each quota, or what is left.
func (s *rules) charge(who *sender, n int) {
	for _, q := range s.quotas {
		if q.applies(who) {
			if !drain(q.keys.Group(), q.key(who), n) && q.networks != nil {
				drain(q.networks.Group(), networkOf(who.addr), n)
			}
		}
	}
}
