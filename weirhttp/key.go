package weirhttp

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
)

// maxKey is the length up to which a key is stored unchanged.
const maxKey = 64

// ByIP is a key function. It returns the address of the client: that of the peer, or the one that
// LimitConfig.Proxies has found. For IPv6 it returns the /64 network, the smallest that a single
// customer has.
func ByIP(r *http.Request) string {
	addr := clientAddr(r)
	if !addr.IsValid() {
		return ""
	}
	return network(addr).String()
}

// ByHeader returns a key function for the value of a header, such as X-Api-Key. A value of more
// than 64 bytes is replaced by its SHA-256.
//
// A client can send any value, and a new one with each request. Unless the values are verified
// before, limit by [ByIP] too.
func ByHeader(name string) func(*http.Request) string {
	return func(r *http.Request) string {
		return boundedKey(r.Header.Get(name))
	}
}

// ByRoute returns a key function for the route of a request: the pattern that mux chooses, or
// http.Request.Pattern if mux is nil. A ServeMux and chi set Pattern before they call the handler.
// For other routers see the package documentation. If Pattern is empty, all routes have the same
// key, and the first such request is logged to slog.Default as an error.
func ByRoute(mux *http.ServeMux) func(*http.Request) string {
	if mux != nil {
		return func(r *http.Request) string {
			_, pattern := mux.Handler(r)
			return pattern
		}
	}
	var logged atomic.Bool // not a sync.Once, which would hold a lock while the logger is called
	return func(r *http.Request) string {
		if r.Pattern == "" && !logged.Load() && !logged.Swap(true) {
			slog.ErrorContext(r.Context(), "weirhttp: ByRoute(nil) found no route because http.Request.Pattern is empty: "+
				"put the middleware behind the http.ServeMux, or call ByRoute with the mux (see Routes in the documentation of package weirhttp)")
		}
		return r.Pattern
	}
}

// ByNothing is a key function that returns the same key for all requests, so that they share one
// quota.
func ByNothing(*http.Request) string { return "all" }

// Combine returns a key function that joins the keys of several. Combine(ByIP, ByRoute(mux)) gives
// each address a quota per route. The address of the client takes the place of an empty key.
func Combine(keys ...func(*http.Request) string) func(*http.Request) string {
	keys = append([]func(*http.Request) string(nil), keys...)
	return func(r *http.Request) string {
		var buf [128]byte
		all := buf[:0]
		for _, key := range keys {
			part := key(r)
			if part == "" {
				part = anonymous(ByIP(r))
			}
			all = append(append(strconv.AppendInt(all, int64(len(part)), 10), ':'), part...)
		}
		return string(all)
	}
}

// anonymous returns the key of a client of which only the address is known. The value of a header
// cannot be such a key.
func anonymous(addr string) string { return "\x00" + addr }

// boundedKey returns the key, or the SHA-256 of a long one.
func boundedKey(key string) string {
	if len(key) <= maxKey {
		return key
	}
	sum := sha256.Sum256([]byte(key))
	return string(sum[:])
}

// Proxies says which proxies are trusted to report the addresses of clients. The zero value trusts
// none: the address of a client is that of the peer, and headers are ignored.
type Proxies struct {
	// Trusted has the networks of your own proxies. Default none.
	Trusted []netip.Prefix

	// Header is the header to which these proxies append the address of their peer:
	// X-Forwarded-For, Forwarded (RFC 7239), or one that they set to a single address, such as
	// X-Real-Ip. All other headers are ignored, because clients can set a header that the proxies
	// do not write. Default X-Forwarded-For.
	Header string
}

// validate returns an error that names all invalid fields, or nil if there are none.
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
		return fmt.Errorf("%v is not a network", n)
	case n.Addr().Is4In6():
		return fmt.Errorf("%v is an IPv4 network in IPv6 form, must be in IPv4 form", n)
	}
	return nil
}

// maxHops is the largest number of proxies in a row that are trusted.
const maxHops = 32

// ClientIP returns the address of the client. If the peer is a trusted proxy, the client's address
// is the right-most address of the header that does not belong to a trusted proxy. The client may
// have invented the addresses to the left of that address. If a proxy wrote something that is not
// an address, or if all addresses belong to proxies, ClientIP returns the address of the last proxy
// that is known. Only the 32 right-most elements of the header are read. IPv4 addresses are in IPv4
// form, and IPv6 addresses have no zone.
//
// The address is invalid if the peer has none, for example on a Unix socket.
func (p Proxies) ClientIP(r *http.Request) netip.Addr {
	addr, ok := parseHop(r.RemoteAddr)
	if !ok || !contains(p.Trusted, addr) {
		return addr
	}
	left := maxHops
	for _, rest := range slices.Backward(r.Header.Values(p.header())) {
		for more := true; more && left > 0; left-- {
			var hop string
			hop, rest, more = cutLastHop(rest)
			if hop == "" {
				continue // an empty element of the list
			}
			next, ok := p.parse(hop)
			if !ok {
				return addr
			}
			if addr = next; !contains(p.Trusted, addr) {
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

// parse returns the address of an element of the header.
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

func contains(networks []netip.Prefix, addr netip.Addr) bool {
	return slices.ContainsFunc(networks, func(n netip.Prefix) bool { return n.Contains(addr) })
}

// parseHop parses an address with or without a port, and for IPv6 with or without brackets.
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

// network returns the address without the part that its owner can choose: for IPv6 the /64 network.
func network(addr netip.Addr) netip.Addr {
	if addr.Is6() {
		masked, _ := addr.Prefix(64)
		return masked.Addr()
	}
	return addr
}

// clientAddrKey is the key of the client's address in the context of a request.
type clientAddrKey struct{}

// clientAddr returns the address that a Limit with Proxies has found, or that of the peer.
func clientAddr(r *http.Request) netip.Addr {
	if addr, ok := r.Context().Value(clientAddrKey{}).(netip.Addr); ok {
		return addr
	}
	return Proxies{}.ClientIP(r)
}

// withClientAddr returns the client's address, and the request with that address in its context if
// the peer is a trusted proxy. ByIP and handlers behind the limit read it there.
func (p Proxies) withClientAddr(r *http.Request) (*http.Request, netip.Addr) {
	addr := clientAddr(r)
	if len(p.Trusted) == 0 {
		return r, addr
	}
	found := p.ClientIP(r)
	if found == addr {
		return r, addr
	}
	if r.Trailer == nil && r.ContentLength < 0 {
		r.Trailer = http.Header{} // which the copy shares, since the server sets trailers in r
	}
	return r.WithContext(context.WithValue(r.Context(), clientAddrKey{}, found)), found
}

// copyBack sets in a request what net/http has set in its copy. The server removes only the
// temporary files of its own request, and middleware in front of the limit can log the route.
func copyBack(to, from *http.Request) {
	if from == to {
		return
	}
	to.Form, to.PostForm, to.MultipartForm = from.Form, from.PostForm, from.MultipartForm
	to.Pattern = from.Pattern
	for _, part := range strings.Split(from.Pattern, "{")[1:] {
		name, _, _ := strings.Cut(part, "}")
		name = strings.TrimSuffix(name, "...")
		if value := from.PathValue(name); value != "" {
			to.SetPathValue(name, value)
		}
	}
}

// cutLastHop returns the last element of a list and the rest of the list. It reads quoted strings
// from the right, so that text to the left of the element, such as an unmatched quotation mark,
// does not change where the element begins.
func cutLastHop(list string) (hop, rest string, more bool) {
	quoted := false
	for i := len(list) - 1; i >= 0; i-- {
		switch {
		case list[i] == '"' && !escaped(list, i):
			quoted = !quoted
		case list[i] == ',' && !quoted:
			return strings.Trim(list[i+1:], " \t"), list[:i], true
		}
	}
	return strings.Trim(list, " \t"), "", false
}

// escaped reports whether the character at i follows an odd number of backslashes.
func escaped(s string, i int) bool {
	n := 0
	for i--; i >= 0 && s[i] == '\\'; i-- {
		n++
	}
	return n%2 == 1
}

// forwardedFor returns the parameter "for" of an element of a Forwarded header. There must be
// exactly one.
func forwardedFor(element string) (node string, ok bool) {
	for element != "" {
		var pair string
		pair, element = cutPair(element)
		name, value, _ := strings.Cut(pair, "=")
		if !strings.EqualFold(strings.Trim(name, " \t"), "for") {
			continue
		}
		if ok {
			return "", false
		}
		if node, ok = unquote(strings.Trim(value, " \t")); !ok {
			return "", false
		}
	}
	return node, ok
}

// cutPair returns the first parameter of an element and the rest of the element.
func cutPair(element string) (pair, rest string) {
	quoted := false
	for i := range len(element) {
		switch {
		case element[i] == '"' && !escaped(element, i):
			quoted = !quoted
		case element[i] == ';' && !quoted:
			return element[:i], element[i+1:]
		}
	}
	return element, ""
}

// unquote returns a value without its quotation marks, which must be on both sides or on none.
// Escapes are not resolved, because addresses have none.
func unquote(value string) (string, bool) {
	inner, opened := strings.CutPrefix(value, `"`)
	inner, closed := strings.CutSuffix(inner, `"`)
	return inner, opened == closed && !strings.Contains(inner, `"`)
}
