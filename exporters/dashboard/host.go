package dashboard

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// anyHost in Config.Hosts stands for all names.
const anyHost = "*"

// answers says whether the page may answer the request by the name of its host. A website
// can give its own name this machine's address, and then reads, by its visitors' browsers,
// what answers to any name ("DNS rebinding"). It cannot do so with an address, nor with
// a name that cannot be registered: one without a dot, or below localhost.
func (p *Page) answers(r *http.Request) bool {
	host := hostOf(r)
	_, err := netip.ParseAddr(host)
	switch {
	case err == nil, !strings.Contains(host, "."), strings.HasSuffix(host, ".localhost"):
		return true
	case len(p.config.Hosts) > 0:
		return slices.ContainsFunc(p.config.Hosts, func(name string) bool { return name == anyHost || strings.EqualFold(name, host) })
	}
	return !fromHere(r)
}

// hostOf is the name or the address that the request asks for, without a port.
func hostOf(r *http.Request) string {
	host := r.Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	return strings.ToLower(strings.TrimSuffix(host, "."))
}

// fromHere says whether the request has come in over the loopback interface.
func fromHere(r *http.Request) bool {
	at, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	return ok && at.IP.IsLoopback()
}

// isHost says whether the text can stand in Config.Hosts.
func isHost(name string) bool {
	return name == anyHost || name != "" && !strings.ContainsAny(name, "*/:[]@ ")
}
