package weirhttp

import (
	"context"
	"errors"
	"net/netip"
	"time"

	"github.com/weir-go/weir/internal/adminhook"
	"github.com/weir-go/weir/internal/report"
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
		o.Quota = l.adminSetting(name,
			func(p Policy) any { return p.Limit },
			func(p *Policy, v any) { p.Limit = v.(int) })
		return o
	}
	o.Limits = l.adminSetting(name,
		func(p Policy) any { return adminhook.Limits{Rate: p.Rate, Burst: p.Burst} },
		func(p *Policy, v any) {
			to := v.(adminhook.Limits)
			p.Rate, p.Burst = to.Rate.(limiter.Rate), to.Burst
		})
	o.Hold = q.hold
	return o
}

// policyNumbers are the numbers of the limits of policies by their names. They are guarded by
// Limit.mu.
type policyNumbers struct {
	all uint64            // the number of the latest Reconfigure
	one map[string]uint64 // the numbers of later changes of one policy
}

func (n *policyNumbers) changeAll() { n.all, n.one = adminhook.NextNumber(), nil }

func (n *policyNumbers) of(name string) uint64 { return max(n.all, n.one[name]) }

// put sets the number of a policy. A number before that of Reconfigure is the number of none.
func (n *policyNumbers) put(name string, number uint64) {
	if n.one == nil {
		n.one = map[string]uint64{}
	}
	n.one[name] = number
}

// adminSetting returns the limits of the policy with the name, which get reads and set changes.
func (l *Limit) adminSetting(name string, get func(p Policy) any, set func(p *Policy, v any)) *adminhook.Setting {
	change := func(v any) func(*Policy) { return func(p *Policy) { set(p, v) } }
	return &adminhook.Setting{
		Get: func() adminhook.Value {
			l.mu.Lock()
			defer l.mu.Unlock()
			return adminhook.Value{V: get(l.policy(name)), Number: l.set.of(name)}
		},
		Set: func(v any, _ string) adminhook.Value {
			l.mu.Lock()
			defer l.mu.Unlock()
			number := adminhook.NextNumber()
			l.changePolicy(name, number, change(v))
			return adminhook.Value{V: v, Number: number}
		},
		Restore: func(now, earlier adminhook.Value, _ string) bool {
			l.mu.Lock()
			defer l.mu.Unlock()
			if l.set.of(name) != now.Number {
				return false
			}
			l.changePolicy(name, earlier.Number, change(earlier.V))
			return true
		},
		Check: func(v any) error { return l.checkPolicy(name, change(v)) },
	}
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

// changePolicy changes the policy with the name, and the number of its limits. It does nothing if
// there is none. The lock is held.
func (l *Limit) changePolicy(name string, number uint64, change func(*Policy)) {
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
		l.set.put(name, number)
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

// The live page reads the limits of the policies through this function.
var _ = func() bool {
	report.Parts = append(report.Parts, func(source any, yield func(name string, limiter any)) {
		l, ok := source.(*Limit)
		if !ok {
			return
		}
		for _, q := range l.rules.Load().quotas {
			if q.keys != nil {
				yield(q.policy.Name, q.keys)
			}
			if q.networks != nil {
				yield(q.policy.networkName(), q.networks)
			}
		}
	})
	return true
}()
