package weirhttp

import (
	"errors"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"unique"

	"github.com/weir-go/weir"
)

// maxHost is the length to which a host is cut. The names of hosts have 253 bytes at most.
const maxHost = 300

// ByHost is a key function for requests to other servers. It returns the host in one form: in lower
// case, without a user, without the root's dot, without the port if that is the default of http or
// https, and with IPv6 addresses in their short form, including the zone. Letters that are not
// ASCII are left as they are. Requests with http and with https, on their default ports, have the
// same key, because these ports are left out. For any other scheme, ByHost returns the scheme and
// the host as they are.
func ByHost(req *http.Request) string {
	if req.URL == nil {
		return ""
	}
	host := hostOf(req.URL)
	// The host is a substring of the URL. A group that stored it would keep the URL in memory.
	return unique.Make(host[:min(len(host), maxHost)]).Value()
}

func hostOf(u *url.URL) string {
	defaultPort := ""
	switch u.Scheme {
	case "http":
		defaultPort = "80"
	case "https":
		defaultPort = "443"
	default:
		return u.Scheme + "://" + u.Host
	}
	host := u.Host[strings.LastIndexByte(u.Host, '@')+1:]
	name, port := splitPort(host)
	port = strings.TrimLeft(port, "0")
	name = canonicalName(name)
	if port == "" || port == defaultPort {
		return name
	}
	if len(name)+1+len(port) == len(host) && strings.HasPrefix(host, name) {
		return host
	}
	return name + ":" + port
}

// splitPort splits a host at its last colon, unless that is part of an IPv6 address.
func splitPort(host string) (name, port string) {
	i := strings.LastIndexByte(host, ':')
	if i < 0 || strings.HasSuffix(host, "]") || host[0] != '[' && strings.IndexByte(host, ':') != i {
		return host, ""
	}
	return host[:i], host[i+1:]
}

// canonicalName returns a host in lower case and without the root's dot, or an IPv6 address in its
// short form.
func canonicalName(name string) string {
	if inner, ok := strings.CutPrefix(name, "["); ok {
		if a, err := netip.ParseAddr(strings.TrimSuffix(inner, "]")); err == nil {
			return "[" + a.String() + "]"
		}
	}
	return lowerASCII(strings.TrimSuffix(name, "."))
}

// lowerASCII returns s with ASCII letters in lower case. Unlike strings.ToLower, it changes no
// other bytes, even if s is not valid UTF-8.
func lowerASCII(s string) string {
	for i := range len(s) {
		if 'A' <= s[i] && s[i] <= 'Z' {
			b := []byte(s)
			for i, c := range b {
				if 'A' <= c && c <= 'Z' {
					b[i] += 'a' - 'A'
				}
			}
			return string(b)
		}
	}
	return s
}

// Per returns a gate function with one gate per key. The key can be that of [ByHost] or [ByRoute],
// a tenant, or any other comparable value. Per panics if group or key is nil.
func Per[K comparable](group *weir.Group[K], key func(*http.Request) K) func(*http.Request) *weir.Gate {
	if group == nil || key == nil {
		panic(errors.New("weirhttp: Per needs a group and a key function"))
	}
	return func(r *http.Request) *weir.Gate { return group.Get(key(r)) }
}

// ForAll returns a gate function with one gate for all requests. It panics if gate is nil.
func ForAll(gate *weir.Gate) func(*http.Request) *weir.Gate {
	if gate == nil {
		panic(errors.New("weirhttp: ForAll needs a gate"))
	}
	return func(*http.Request) *weir.Gate { return gate }
}
