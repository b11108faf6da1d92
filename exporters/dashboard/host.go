package dashboard

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// anyHost in Config.Hosts allows all names.
const anyHost = "*"

// allowsHost reports whether the page may be served under the host name of the request. With DNS
// rebinding, a website gives its own name the address of this machine, and then its visitors'
// browsers let it read what is served under any name. It cannot do that with an address, or with a
// name that cannot be registered: one without a dot, or one below localhost.
func (p *Page) allowsHost(r *http.Request) bool {
	host := hostOf(r)
	_, err := netip.ParseAddr(host)
	switch {
	case err == nil, !strings.Contains(host, "."), strings.HasSuffix(host, ".localhost"):
		return true
	case len(p.config.Hosts) > 0:
		return slices.ContainsFunc(p.config.Hosts, func(name string) bool { return name == anyHost || strings.EqualFold(name, host) })
	}
	return !viaLoopback(r)
}

// hostOf returns the requested host name or address, without a port.
func hostOf(r *http.Request) string {
	host := r.Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	return strings.ToLower(strings.TrimSuffix(host, "."))
}

// viaLoopback reports whether the request came over the loopback interface.
func viaLoopback(r *http.Request) bool {
	at, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	return ok && at.IP.IsLoopback()
}

// validHost reports whether the name is valid in Config.Hosts.
func validHost(name string) bool {
	return name == anyHost || name != "" && !strings.ContainsAny(name, "*/:[]@ ")
}
