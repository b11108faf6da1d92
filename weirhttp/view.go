package weirhttp

import (
	"context"
	"errors"
	"net/netip"
	"strconv"
	"time"

	"github.com/weir-go/weir/internal/friend"
	"github.com/weir-go/weir/internal/settings"
	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/stat/view"
)

// Views yields the views of the policies for package admin and the live page.
func (l *Limit) Views(yield func(view.View) bool) {
	for _, q := range l.rules.Load().quotas {
		v := policyView{l, q}
		switch {
		case q.keys == nil: // it has a Remote
			if !yield(v) {
				return
			}
		case q.policy.Quota != nil:
			if !yield(keysView{v}) {
				return
			}
		case q.policy.isWindow():
			if !yield(keyedView{keysView{v}}) {
				return
			}
		default:
			if !yield(bucketsView{keyedView{keysView{v}}}) {
				return
			}
		}
	}
}

// policyView is what package admin and the live page see of a policy.
type policyView struct {
	l *Limit
	q *policyInUse
}

func (policyView) Kind() string                      { return "policy" }
func (v policyView) Name() string                    { return v.q.policy.Name }
func (v policyView) Busiest(n int) []limiter.BusyKey { return v.q.busiest(n) }

// keysView is policyView for a policy whose keys are in this process.
type keysView struct{ policyView }

func (v keysView) Reset(context.Context, string) error {
	v.q.forgetAll()
	return nil
}

func (v keysView) Key(text string) (view.View, bool) { return keyView{v.q, text}, true }

// keyView is what package admin sees of a key.
type keyView struct {
	q   *policyInUse
	key string
}

func (keyView) Kind() string   { return "policy" }
func (v keyView) Name() string { return v.q.policy.Name }

func (v keyView) Reset(context.Context, string) error {
	v.q.forget(v.key)
	return nil
}

// keyedView is keysView for a policy whose limits can be changed.
type keyedView struct{ keysView }

// bucketsView is keyedView for a policy with a Rate.
type bucketsView struct{ keyedView }

func (v bucketsView) Hold(d time.Duration) { v.q.hold(d) }

// Limit returns the rate of a key, and the burst in effect.
func (v bucketsView) Limit() (limiter.Rate, int) {
	return v.q.policy.Rate, v.q.keys.(*bucketTable).burst()
}

// Settings returns the limits of the policy.
func (v keyedView) Settings() []view.Setting {
	v.l.mu.Lock()
	defer v.l.mu.Unlock()
	return v.l.policy(v.Name()).settings(v.l.set.of(v.Name()))
}

// settings returns the limits of the policy with a version.
func (p *Policy) settings(version uint64) []view.Setting {
	if p.isWindow() {
		return []view.Setting{{Name: settings.Limit, Value: strconv.Itoa(p.Limit), Version: version}}
	}
	return []view.Setting{
		{Name: settings.Rate, Value: p.Rate.String(), Version: version},
		{Name: settings.Burst, Value: strconv.Itoa(p.Burst), Version: version},
	}
}

// change changes the limits of the policy to the values of settings.
func (p *Policy) change(s []view.Setting) error {
	if p.isWindow() {
		return settings.Int(s, settings.Limit, &p.Limit)
	}
	return errors.Join(settings.Unmarshal(s, settings.Rate, &p.Rate), settings.Int(s, settings.Burst, &p.Burst))
}

func (v keyedView) Set(_ string, s ...view.Setting) ([]view.Setting, error) {
	l, name := v.l, v.Name()
	l.mu.Lock()
	defer l.mu.Unlock()
	version := settings.NextVersion()
	next, err := settings.Next(l.policy(name).settings(0), s)
	if err == nil {
		err = l.changePolicy(name, version, next)
	}
	if err != nil {
		return nil, err
	}
	return settings.Named(l.policy(name).settings(version), s), nil
}

func (v keyedView) Restore(_ string, set, earlier []view.Setting) bool {
	l, name := v.l, v.Name()
	l.mu.Lock()
	defer l.mu.Unlock()
	next, version, ok := settings.Undo(l.policy(name).settings(l.set.of(name)), set, earlier)
	return ok && l.changePolicy(name, version, next) == nil
}

// policyNumbers are the numbers of the limits of policies by their names. They are guarded by
// Limit.mu.
type policyNumbers struct {
	all uint64            // the number of the latest Reconfigure
	one map[string]uint64 // the numbers of later changes of one policy
}

func (n *policyNumbers) changeAll() { n.all, n.one = settings.NextVersion(), nil }

func (n *policyNumbers) of(name string) uint64 { return max(n.all, n.one[name]) }

// put sets the number of a policy. A number before that of Reconfigure is the number of none.
func (n *policyNumbers) put(name string, number uint64) {
	if n.one == nil {
		n.one = map[string]uint64{}
	}
	n.one[name] = number
}

// policy returns the policy with the name, or a zero Policy.
func (l *Limit) policy(name string) *Policy {
	for _, q := range l.rules.Load().quotas {
		if q.policy.Name == name {
			p := q.policy
			return &p
		}
	}
	return &Policy{}
}

// changePolicy changes the limits of the policy with the name, and their version. The lock is held.
func (l *Limit) changePolicy(name string, version uint64, s []view.Setting) error {
	if l.policy(name).Name == "" {
		return errors.New("weirhttp: policy \"" + name + "\" is gone")
	}
	old := l.rules.Load()
	c := old.config
	c.Policies = nil
	for _, q := range old.quotas {
		p := q.policy
		if p.Name == name {
			if err := p.change(s); err != nil {
				return err
			}
			if err := validatePolicies([]Policy{p}); err != nil {
				return err
			}
		}
		c.Policies = append(c.Policies, p)
	}
	next, err := newRules(c, old)
	if err == nil {
		l.rules.Store(next)
		l.set.put(name, version)
	}
	return err
}

// hold refuses all requests that the quota counts, for d. It affects only tables of token buckets.
func (q *policyInUse) hold(d time.Duration) {
	for _, table := range []keyTable{q.keys, q.networks} {
		if b, ok := table.(*bucketTable); ok {
			b.Inside(friend.Key{}).HoldAll(d)
		}
	}
}

func (q *policyInUse) forgetAll() {
	q.keys.forgetAll()
	if q.networks != nil {
		q.networks.forgetAll()
	}
}

// forget makes the quota of a key full. The key may be an address.
func (q *policyInUse) forget(key string) {
	text := key
	if q.policy.Quota == nil {
		text = boundedKey(key)
	}
	q.keys.Forget(quotaKey{text: text})
	if addr, err := netip.ParseAddr(key); err == nil {
		q.keys.Forget(quotaKey{addr: network(addr.Unmap().WithZone(""))})
	}
}
