package weirhttp

import (
	"crypto/sha256"
	"log/slog"
	"net/http"
	"strconv"
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
