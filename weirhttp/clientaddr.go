package weirhttp

import (
	"context"
	"net/http"
	"net/netip"
)

// clientAddrKey is the key of the client's address in the context of a request.
type clientAddrKey struct{}

// clientAddr returns the address that a Limit with Proxies found, or that of the peer.
func clientAddr(r *http.Request) netip.Addr {
	if addr, ok := r.Context().Value(clientAddrKey{}).(netip.Addr); ok {
		return addr
	}
	return Proxies{}.ClientIP(r)
}

// identify returns the request with the address of its client in the context, where the peer is a
// proxy, so that ByIP and what stands behind the limit see it.
func (p Proxies) identify(r *http.Request) (*http.Request, netip.Addr) {
	addr := clientAddr(r)
	if len(p.Trusted) == 0 {
		return r, addr
	}
	found := p.ClientIP(r)
	if found == addr {
		return r, addr
	}
	return r.WithContext(context.WithValue(r.Context(), clientAddrKey{}, found)), found
}
