package weirhttp

import (
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"unique"
)

// maxHost is the length to which a host is cut: a name has 253 bytes at most, and what is
// longer exists nowhere.
const maxHost = 300

// ByHost is a key function for outgoing requests. It returns the host that a request goes to in one form, whichever way it is written:
// in lower case, without the port where it is that of http or https, without user, and
// without the dot of the root. IPv6 addresses are in their short form, with their zone. Of a
// name that is not plain ASCII the other letters are left as given. So http and https on their own ports are
// one; any other scheme stands before the host, which is left as given then.
func ByHost(req *http.Request) string {
	if req.URL == nil {
		return ""
	}
	host := hostOf(req.URL)
	// The string is part of the whole URL, which a group that keeps it would keep too.
	return unique.Make(host[:min(len(host), maxHost)]).Value()
}

func hostOf(u *url.URL) string {
	usual := ""
	switch u.Scheme {
	case "http":
		usual = "80"
	case "https":
		usual = "443"
	default:
		return u.Scheme + "://" + u.Host
	}
	host := u.Host[strings.LastIndexByte(u.Host, '@')+1:]
	name, port := splitPort(host)
	port = strings.TrimLeft(port, "0")
	name = plainName(name)
	if port == "" || port == usual {
		return name
	}
	if len(name)+1+len(port) == len(host) && strings.HasPrefix(host, name) {
		return host
	}
	return name + ":" + port
}

// splitPort divides at the last colon, unless it is one of an IPv6 address.
func splitPort(host string) (name, port string) {
	i := strings.LastIndexByte(host, ':')
	if i < 0 || strings.HasSuffix(host, "]") || host[0] != '[' && strings.IndexByte(host, ':') != i {
		return host, ""
	}
	return host[:i], host[i+1:]
}

func plainName(name string) string {
	if inner, ok := strings.CutPrefix(name, "["); ok {
		if a, err := netip.ParseAddr(strings.TrimSuffix(inner, "]")); err == nil {
			return "[" + a.String() + "]"
		}
	}
	return lowerASCII(strings.TrimSuffix(name, "."))
}

// lowerASCII is strings.ToLower that knows no other letters, and leaves alone what is no
// UTF-8 at all.
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
