package weirhttp

import (
	"crypto/sha256"
	"log/slog"
	"net/http"
	"strconv"
	"sync"
)

// Key functions say which requests belong together: those for which they return the same string. They
// serve as Policy.By of a [Limit], and as the key of [Per].

// maxKey is the length up to which a key is kept as it is.
const maxKey = 64

// ByIP is a key function. It returns the address of the client, of IPv6 the /64 network, which is the
// least that one customer has. It is the peer's address, unless LimitConfig.Proxies found another.
func ByIP(r *http.Request) string {
	addr := clientAddr(r)
	if !addr.IsValid() {
		return ""
	}
	return network(addr).String()
}

// ByHeader returns a key function for the value of a header, such as X-Api-Key. A value of more than
// 64 bytes is replaced by its SHA-256, so that clients cannot fill the memory with long keys.
//
// A client may send any value, and a new one with each request. Unless the values are checked before,
// put a policy by address beside one by header.
func ByHeader(name string) func(*http.Request) string {
	return func(r *http.Request) string {
		key := r.Header.Get(name)
		if len(key) > maxKey {
			return bounded(key)
		}
		return key
	}
}

// ByRoute returns a key function for the route: the pattern that mux chooses for the request. If mux
// is nil it is http.Request.Pattern, which a ServeMux and chi set before they call the handler. For
// other routers see the package documentation. If the Pattern is empty, all routes count as one; the
// first such request is logged to slog.Default as an error.
func ByRoute(mux *http.ServeMux) func(*http.Request) string {
	if mux != nil {
		return func(r *http.Request) string {
			_, pattern := mux.Handler(r)
			return pattern
		}
	}
	var once sync.Once
	return func(r *http.Request) string {
		if r.Pattern == "" {
			once.Do(func() {
				slog.ErrorContext(r.Context(), "weirhttp: ByRoute(nil) found no route, because http.Request.Pattern is empty: "+
					"put the handler behind the http.ServeMux, or give the mux to ByRoute (see Routes in the documentation of package weirhttp)")
			})
		}
		return r.Pattern
	}
}

// ByNothing is a key function that returns the same key for all requests, which so share one quota.
func ByNothing(*http.Request) string { return "all" }

// Combine returns a key function that tells requests apart by several others together:
// Combine(ByIP, ByRoute(mux)) gives each address a quota on each route. In the place of a key that is
// empty it puts the address of the client.
func Combine(keys ...func(*http.Request) string) func(*http.Request) string {
	keys = append([]func(*http.Request) string(nil), keys...)
	return func(r *http.Request) string {
		var room [128]byte
		all := room[:0]
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

// anonymous returns the key of a client that is known by its address alone. No header has such a value.
func anonymous(addr string) string { return "\x00" + addr }

// bounded returns the key, or the SHA-256 of a long one.
func bounded(key string) string {
	if len(key) <= maxKey {
		return key
	}
	sum := sha256.Sum256([]byte(key))
	return string(sum[:])
}
