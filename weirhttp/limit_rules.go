package weirhttp

import (
	"net/http"
	"net/netip"
	"slices"
)

// rules are a LimitConfig in use. They do not change.
type rules struct {
	config LimitConfig
	quotas []*quota
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
func (s *rules) find(p Policy) *quota {
	if s == nil || p.Remote != nil {
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
