package weirhttp

import (
	"net/netip"
	"time"

	"github.com/weir-go/weir/limiter"
)

// A policy that is full of keys in use counts requests with new keys by the network they come from. So
// a flood of keys refuses new keys of its own network only, and what keys have used is not forgotten.

// The prefix lengths of these networks. One customer may hold an IPv6 /32; an IPv4 /24 is the smallest
// network that is routed on the internet.
const (
	networkBits4 = 24
	networkBits6 = 32
)

// networkShare is MaxKeys per network that is remembered.
const networkShare = 4

// countsByNetwork reports whether a full policy counts new keys by network.
func (p Policy) countsByNetwork() bool {
	return p.By != 0 && p.Overflow == limiter.RefuseNew
}

// newNetworks returns the quotas of networks, or nil if the policy does not count by network.
func (p Policy) newNetworks() *limiter.NamedGroup[netip.Prefix] {
	if !p.countsByNetwork() {
		return nil
	}
	keys := p.MaxKeys
	if keys == 0 {
		keys = defaultKeys
	}
	group := limiter.NewGroup(limiter.GroupConfig[netip.Prefix]{
		Rate: p.tier().Rate, Burst: p.burst(), MaxKeys: max(keys/networkShare, 1), Overflow: limiter.RefuseNew,
	})
	return limiter.NewNamedGroup(p.networkName(), group, limiter.NamedConfig{Shadow: p.Shadow})
}

// networkName is the name of the networks in metrics.
func (p Policy) networkName() string { return p.Name + " by network" }

// networkOf returns the network of an address, or the zero Prefix if the address is not valid.
func networkOf(addr netip.Addr) netip.Prefix {
	bits := networkBits4
	if addr.Is6() {
		bits = networkBits6
	}
	p, _ := addr.Prefix(bits)
	return p
}

// foundNoRoom reports whether a group refused because it is full: the bucket of such a key is full too.
func foundNoRoom(r limiter.Result) bool {
	return r.RetryAfter > 0 && r.RetryAfter != limiter.Never && r.ResetAfter == 0
}

// drain takes n of a key, or what is left if that is less, also under concurrent takes. It asks for
// what is left at a new time, because a time before that of a concurrent take shows less. It reports
// whether there was room for the key.
func drain[K comparable](group *limiter.Group[K], key K, n int) (room bool) {
	for tries := 0; n > 0; tries++ {
		r := group.Take(key, n)
		if r.OK {
			break
		}
		if foundNoRoom(r) {
			return false
		}
		left := r.Remaining
		if tries < manyTries { // later the refusal is believed: a key that shares a bucket looks full by itself
			left = group.Take(key, 0).Remaining
		}
		n = min(n-1, left)
	}
	return true
}

// manyTries is more than concurrent takes cause.
const manyTries = 100

// takeUncounted takes n from the quota that the request is counted by, without counting it in statistics.
func (a *answer) takeUncounted(at time.Time, n int) limiter.Result {
	if a.byNetwork {
		return a.quota.networks.Group().TakeAt(at, networkOf(a.addr), n)
	}
	return a.quota.keys.Group().TakeAt(at, a.key, n)
}

// refund gives n back to the quota that the request is counted by.
func (a *answer) refund(n int) {
	if a.byNetwork {
		a.quota.networks.Refund(networkOf(a.addr), n)
	} else {
		a.quota.keys.Refund(a.key, n)
	}
}
