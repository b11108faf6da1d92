package weirhttp

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"reflect"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/internal/busy"
	"github.com/weir-go/weir/internal/friend"
	"github.com/weir-go/weir/internal/remote"
	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/stat"
)

// policyInUse is a Policy in use. Its keys survive a Reconfigure.
type policyInUse struct {
	policy Policy
	byIP   bool     // Policy.By is ByIP, and there is neither a Quota nor a Remote
	item   string   // of RateLimit-Policy; empty for a Quota and for a Remote
	keys   keyTable // nil for a Remote
	// for clients whose keys have no room in keys; nil if they are refused or pass
	networks keyTable

	refusals *busy.Sketch[quotaKey]    // the refusals of a Remote; nil if keys counts the refusals
	warned   atomic.Pointer[time.Time] // when it was last logged that keys has no room
}

// newQuota returns a quota with the keys of an old one, or with no keys if old is nil.
func newQuota(p Policy, old *policyInUse) (q *policyInUse, err error) {
	q = &policyInUse{policy: p}
	if p.Remote != nil {
		q.refusals = busy.New[quotaKey](p.ShowKeys)
		return q, nil
	}
	if p.Quota != nil {
		q.policy.Shadow = p.Quota.Inside(friend.Key{}).IsShadow()
		q.keys = calendarTable{p.Quota}
		return q, nil
	}
	q.byIP, q.item = isByIP(p.By), policyItem(p)
	if old == nil {
		q.keys = newKeyTable(p, p.Name, p.maxKeys())
		if p.countsByNetwork() {
			q.networks = newKeyTable(p, p.networkName(), p.maxNetworks())
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

func (q *policyInUse) applies(r *http.Request) bool { return q.policy.When == nil || q.policy.When(r) }

// isByIP reports whether a key function is ByIP. A func can only be compared by its code, which
// identifies ByIP because it is not a closure.
func isByIP(by func(*http.Request) string) bool {
	return reflect.ValueOf(by).Pointer() == reflect.ValueOf(ByIP).Pointer()
}

// key returns the key of a request from the address. For ByIP, the address itself is the key,
// without a conversion to text. If a function of the user returns the same texts as ByIP, its keys
// are addresses too.
func (q *policyInUse) key(r *http.Request, addr netip.Addr) quotaKey {
	byAddr := quotaKey{addr: network(addr)}
	if q.byIP {
		return byAddr
	}
	key := q.policy.By(r)
	if q.policy.Quota != nil && key != "" {
		return quotaKey{text: key} // as other users of the Quota name it; it bounds the key itself
	}
	if key == "" || q.keys != nil && isText(key, byAddr.addr) {
		return byAddr
	}
	return quotaKey{text: boundedKey(key)}
}

// isText reports whether s is the text of an address.
func isText(s string, addr netip.Addr) bool {
	var buf [64]byte
	return string(addr.AppendTo(buf[:0])) == s
}

// charge takes n from the quota of a request, also beyond it. A quota that several keys share, and
// a Remote without a method Charge, have no debts: they are charged for n, or for what is left if
// that is less.
func (q *policyInUse) charge(r *http.Request, addr netip.Addr, n int) {
	key := q.key(r, addr)
	switch {
	case n < 1:
	case q.keys == nil:
		chargeRemote(r, q.remote(key), n)
	case q.keys.charge(key, n):
	case !q.keys.drain(key, n) && q.networks != nil:
		q.networks.drain(networkKey(addr), n)
	}
}

// chargeRemote charges a remote limit, even if the client has gone away. If the limit returns an
// error, nothing is charged.
func chargeRemote(r *http.Request, limit limiter.Remote, n int) {
	ctx := context.WithoutCancel(r.Context())
	if can, _ := remote.Charge(ctx, limit, n); can {
		return
	}
	if taken, err := limit.Take(ctx, n); err == nil && !taken.OK && taken.Remaining > 0 {
		_, _ = limit.Take(ctx, min(n, taken.Remaining))
	}
}

// remote returns the remote limit of a key.
func (q *policyInUse) remote(key quotaKey) limiter.Remote {
	if key.text == "" {
		return q.policy.Remote(anonymous(key.addr.String()))
	}
	return q.policy.Remote(key.Clone(friend.Key{}).text)
}

// observe yields the statistics of the quota. It reports whether yield wants more.
func (q *policyInUse) observe(yield func(*stat.Series, float64) bool) bool {
	for _, table := range []keyTable{q.keys, q.networks} {
		if table == nil {
			continue
		}
		for s, v := range table.Observe {
			if !yield(s, v) {
				return false
			}
		}
	}
	return true
}

// If all keys of a policy are in use, requests with new keys are counted by the network they come
// from. So a flood of keys from one network refuses new keys of that network only, and no key in
// use is forgotten.

// The prefix lengths of these networks. A single customer can hold an IPv6 /32; an IPv4 /24 is the
// smallest network that is routed on the internet.
const (
	networkBits4 = 24
	networkBits6 = 32
)

// keysPerNetwork is how many times larger MaxKeys is than the number of networks that are stored.
const keysPerNetwork = 4

// maxNetworks returns how many networks are stored.
func (p Policy) maxNetworks() int { return max(p.maxKeys()/keysPerNetwork, 1) }

// countsByNetwork reports whether requests without room for their key are counted by network.
func (p Policy) countsByNetwork() bool { return !p.ShareNew }

// noRoomError is the error of a request that was refused because all keys of a policy are in use.
type noRoomError struct {
	policy   string
	maxKeys  int  // 0 if it is not known
	networks int  // how many networks are stored, if the request is counted by network
	shared   bool // several keys share the quota, which is used up
}

func (e *noRoomError) Error() string {
	text := fmt.Sprintf("weirhttp: policy %q has no room for the key", e.policy)
	if e.maxKeys > 0 {
		text += fmt.Sprintf(": MaxKeys is %d", e.maxKeys)
	}
	switch {
	case e.shared && e.networks > 0:
		text += ", and the quota that new keys of the same network share is used up"
	case e.shared:
		text += ", and the quota that new keys share is used up"
	case e.networks > 0:
		text += fmt.Sprintf(", nor for its network: MaxKeys/4 is %d", e.networks)
	}
	return text
}

// warnNoRoom logs that new keys have no quota of their own, at most once per minute.
func (q *policyInUse) warnNoRoom(ctx context.Context, maxKeys int) {
	last := q.warned.Load()
	if last != nil && time.Since(*last).Abs() < time.Minute {
		return
	}
	if now := time.Now(); !q.warned.CompareAndSwap(last, &now) {
		return
	}
	args := []any{"policy", q.policy.Name, "MaxKeys", maxKeys}
	if q.keys != nil && q.policy.Quota == nil { // they decide themselves
		args = append(args, "ShareNew", q.policy.ShareNew)
	}
	slog.WarnContext(ctx, "weirhttp: a policy has no room for quotas of new keys: raise MaxKeys", args...)
}

// networkName returns the name of the networks in metrics.
func (p Policy) networkName() string { return p.Name + " by network" }

// networkKey returns the key of an address's network. It is the same for all addresses that are not
// valid.
func networkKey(addr netip.Addr) quotaKey {
	bits := networkBits4
	if addr.Is6() {
		bits = networkBits6
	}
	p, _ := addr.Prefix(bits)
	return quotaKey{addr: p.Addr()}
}
