package weirhttp

import (
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// Proxies says whom to believe about the address from which a request comes. The zero Proxies believes nobody: the
// address is that of the peer, whatever the headers say.
type Proxies struct {
	Trusted []netip.Prefix // the networks of your own proxies, and of nobody else. Default: none.

	// Header is the one header in which these proxies write the address that they were called from, at the end of what is there:
	// X-Forwarded-For, Forwarded (RFC 7239), or one that they set to a single address, such as X-Real-Ip. All others are ignored, for
	// what the proxies do not write anybody can. Default: X-Forwarded-For.
	Header string
}

// maxHops is how many proxies in a row are believed.
const maxHops = 32

// validate returns an error that names all faults, or nil.
func (p Proxies) validate() error {
	var faults []error
	for _, n := range p.Trusted {
		if err := validateNetwork(n); err != nil {
			faults = append(faults, fmt.Errorf("weirhttp: Proxies.Trusted: %w", err))
		}
	}
	if !isToken(p.header()) {
		faults = append(faults, fmt.Errorf("weirhttp: Proxies.Header is %q, must be the name of a header", p.Header))
	}
	return errors.Join(faults...)
}

func validateNetwork(n netip.Prefix) error {
	switch {
	case !n.IsValid():
		return fmt.Errorf("%v is no network", n)
	case n.Addr().Is4In6():
		return fmt.Errorf("%v is an IPv4 network written as IPv6, must be written as IPv4", n)
	}
	return nil
}

// ClientIP returns the address from which a request comes. If the peer is a trusted proxy that is the right-most
// address in the header which is none of a trusted proxy: what stands left of it, the client may have made up. Where a proxy wrote
// what is no address, or all are proxies, it is the address of the last proxy that can be told, so those who hide
// share one. IPv4 addresses come as such, and IPv6 ones without a zone.
//
// The address is not valid if the peer has none, as on a Unix socket.
func (p Proxies) ClientIP(r *http.Request) netip.Addr {
	addr, ok := parseHop(r.RemoteAddr)
	if !ok || !inside(p.Trusted, addr) {
		return addr
	}
	left := maxHops
	for _, rest := range slices.Backward(r.Header.Values(p.header())) {
		for more := true; more && left > 0; left-- {
			var hop string
			hop, rest, more = lastHop(rest)
			if hop == "" {
				continue // an empty element of a list says nothing
			}
			next, ok := p.parse(hop)
			if !ok {
				return addr
			}
			if addr = next; !inside(p.Trusted, addr) {
				return addr
			}
		}
	}
	return addr
}

func (p Proxies) header() string {
	if p.Header == "" {
		return "X-Forwarded-For"
	}
	return p.Header
}

func (p Proxies) parse(hop string) (netip.Addr, bool) {
	if !strings.EqualFold(p.Header, "Forwarded") {
		return parseHop(hop)
	}
	node, ok := forwardedFor(hop)
	if !ok {
		return netip.Addr{}, false
	}
	return parseHop(node)
}

func inside(networks []netip.Prefix, addr netip.Addr) bool {
	for _, n := range networks {
		if n.Contains(addr) {
			return true
		}
	}
	return false
}

// parseHop reads an address as it stands in these headers: with a port or without, an IPv6 one in brackets or not.
func parseHop(s string) (netip.Addr, bool) {
	if colon := strings.LastIndexByte(s, ':'); colon > 0 && (s[colon-1] == ']' || strings.IndexByte(s, ':') == colon) {
		both, err := netip.ParseAddrPort(s)
		return both.Addr().Unmap().WithZone(""), err == nil
	}
	if inner, ok := strings.CutPrefix(s, "["); ok {
		s = strings.TrimSuffix(inner, "]")
	}
	addr, err := netip.ParseAddr(s)
	return addr.Unmap().WithZone(""), err == nil
}

// network is an address without the part that its holder can choose: of IPv6, a customer has at least a /64.
func network(addr netip.Addr) netip.Addr {
	if addr.Is6() {
		masked, _ := addr.Prefix(64) // an IPv6 address has that many bits
		return masked.Addr()
	}
	return addr
}
