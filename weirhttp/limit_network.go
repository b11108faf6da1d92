package weirhttp

import (
	"net/netip"

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
func (p Policy) countsByNetwork() bool { return p.Overflow == limiter.RefuseNew }

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
