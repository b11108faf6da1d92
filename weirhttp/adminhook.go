package weirhttp

import (
	"context"
	"errors"
	"net/netip"
	"time"

	"github.com/weir-go/weir/internal/adminhook"
	"github.com/weir-go/weir/limiter"
)

// Package admin uses the policies of limits through this function.
var _ = func() bool {
	adminhook.OfPolicies = func(source any) (list []adminhook.Object, ok bool) {
		l, ok := source.(*Limit)
		if !ok {
			return nil, false
		}
		for _, q := range l.rules.Load().quotas {
			list = append(list, l.adminObject(q))
		}
		return list, true
	}
	return true
}()

func (l *Limit) adminObject(q *quota) adminhook.Object {
	name := q.policy.Name
	o := adminhook.Object{Kind: "policy", Name: name, Busiest: func(n int) any { return q.busiest(n) }}
	if q.keys == nil {
		return o
	}
	o.Reset = func(context.Context, string) error {
		q.forgetAll()
		return nil
	}
	o.Keyed = func(key string) (adminhook.Object, bool) {
		return adminhook.Object{Name: name, Reset: func(context.Context, string) error {
			q.forget(key)
			return nil
		}}, true
	}
	if q.policy.isWindow() {
		o.Quota = &adminhook.Quota{
			Get:   func() int { return l.policy(name).Limit },
			Set:   func(n int) { l.changePolicy(name, func(p *Policy) { p.Limit = n }) },
			Check: func(n int) error { return l.checkPolicy(name, func(p *Policy) { p.Limit = n }) },
		}
		return o
	}
	set := func(rate any, burst int) func(*Policy) {
		return func(p *Policy) { p.Rate, p.Burst = rate.(limiter.Rate), burst }
	}
	o.Limits = &adminhook.Limits{
		Get: func() (rate any, burst int) {
			p := l.policy(name)
			return p.Rate, p.Burst
		},
		Set:   func(rate any, burst int) { l.changePolicy(name, set(rate, burst)) },
		Check: func(rate any, burst int) error { return l.checkPolicy(name, set(rate, burst)) },
	}
	o.Hold = q.hold
	return o
}

// policy returns the policy with the name, or a zero Policy.
func (l *Limit) policy(name string) Policy {
	for _, q := range l.rules.Load().quotas {
		if q.policy.Name == name {
			return q.policy
		}
	}
	return Policy{}
}

// changePolicy changes the policy with the name. It does nothing if there is none.
func (l *Limit) changePolicy(name string, change func(*Policy)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	old := l.rules.Load()
	c := old.config
	c.Policies = nil
	for _, q := range old.quotas {
		p := q.policy
		if p.Name == name {
			change(&p)
		}
		c.Policies = append(c.Policies, p)
	}
	if c.Validate() != nil {
		return // the policy has another form since the check
	}
	if next, err := newRules(c, old); err == nil {
		l.rules.Store(next)
	}
}

// checkPolicy returns the error of the policy after the change.
func (l *Limit) checkPolicy(name string, change func(*Policy)) error {
	p := l.policy(name)
	if p.Name == "" {
		return errors.New("weirhttp: policy \"" + name + "\" is gone")
	}
	change(&p)
	return validatePolicies([]Policy{p})
}

// hold refuses all requests that the quota counts, for d. It affects only tables of token buckets.
func (q *quota) hold(d time.Duration) {
	for _, table := range []keyTable{q.keys, q.networks} {
		if b, ok := table.(*bucketTable); ok {
			b.adminObject().Hold(d)
		}
	}
}

func (q *quota) forgetAll() {
	q.keys.forgetAll()
	if q.networks != nil {
		q.networks.forgetAll()
	}
}

// forget makes the quota of a key full. The key may be an address.
func (q *quota) forget(key string) {
	q.keys.Forget(quotaKey{text: boundedKey(key)})
	if addr, err := netip.ParseAddr(key); err == nil {
		q.keys.Forget(quotaKey{addr: network(addr.Unmap().WithZone(""))})
	}
}
