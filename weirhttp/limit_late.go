package weirhttp

import (
	"net/netip"
	"time"

	"github.com/weir-go/weir/limiter"
)

// A policy whose keys strangers can make up, and that is full of keys in use, counts requests for
// which there is no room by the network that they come from. So a flood of keys keeps out
// newcomers of its own network and nobody else, and what keys have used is not forgotten.

// The networks that newcomers are counted by. One customer may have as much as an IPv6 /32, and
// an IPv4 /24 is the least that is announced to the internet.
const (
	lateBits4 = 24
	lateBits6 = 32
)

// lateShare is the share of MaxKeys that is the most networks that are remembered.
const lateShare = 4

// countsLate reports whether the policy counts newcomers by network when it is full.
func (p Policy) countsLate() bool {
	return p.By&(ByIP|ByClient) != 0 && p.Overflow == limiter.RefuseNew
}

func (p Policy) newLate() *limiter.NamedGroup[netip.Prefix] {
	if !p.countsLate() {
		return nil
	}
	keys := p.MaxKeys
	if keys == 0 {
		keys = defaultKeys
	}
	group := limiter.NewGroup(limiter.GroupConfig[netip.Prefix]{
		Rate: p.tier().Rate, Burst: p.burst(), MaxKeys: max(keys/lateShare, 1), Overflow: limiter.RefuseNew,
	})
	return limiter.NewNamedGroup(p.lateName(), group, limiter.NamedConfig{Shadow: p.Shadow})
}

// lateName is how metrics know what newcomers were counted by.
func (p Policy) lateName() string { return p.Name + " by network" }

// lateKey is the network that an address counts by; the zero Prefix for what has none.
func lateKey(addr netip.Addr) netip.Prefix {
	bits := lateBits4
	if addr.Is6() {
		bits = lateBits6
	}
	p, _ := addr.Prefix(bits)
	return p
}

// foundNoRoom reports whether a group refused because it is full, and not the key: of such a key
// nothing is missing.
func foundNoRoom(r limiter.Result) bool {
	return r.RetryAfter > 0 && r.RetryAfter != limiter.Never && r.ResetAfter == 0
}

// drain takes n of a key, or what is left where that is less, also while others take of the same:
// what is left is asked at a time of its own, since at one before theirs there seems to be less. It
// reports whether there was room for the key.
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
		if tries < manyTries { // a key without room that shares a bucket always seems to be full
			left = group.Take(key, 0).Remaining
		}
		n = min(n-1, left)
	}
	return true
}

const manyTries = 100

// ask asks the quota that the request is counted by, and counts nothing.
func (a *answer) ask(at time.Time, n int) limiter.Result {
	if a.late {
		return a.quota.late.Group().TakeAt(at, lateKey(a.addr), n)
	}
	return a.quota.keys.Group().TakeAt(at, a.key, n)
}

// refund gives back to the quota that the request is counted by.
func (a *answer) refund(n int) {
	if a.late {
		a.quota.late.Refund(lateKey(a.addr), n)
	} else {
		a.quota.keys.Refund(a.key, n)
	}
}
