package weirgrpc

import (
	"context"
	"crypto/sha256"
	"net"
	"net/netip"
	"strings"

	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
)

// Key functions say which calls belong together: those for which they return the same string. They are
// the key of [LimitBy], [LimitRemote] and [Per], for which any function of this form serves.

// ByMethod is a key function. It returns the method in full. A method of more than 128 bytes, which
// clients can choose where there is a grpc.UnknownServiceHandler, is replaced by its SHA-256.
func ByMethod(_ context.Context, c Call) string { return bounded(c.Method) }

// ByService is a key function. It returns the service that the method belongs to, such as "shop.Stock",
// or its SHA-256 if it has more than 128 bytes.
func ByService(_ context.Context, c Call) string {
	name := strings.TrimPrefix(c.Method, "/")
	if i := strings.LastIndexByte(name, '/'); i >= 0 {
		name = name[:i]
	}
	if len(c.Method) > maxValue {
		name = strings.Clone(name) // a part would keep the whole
	}
	return bounded(name)
}

// ByPeer is a key function. It returns the address of the other end of the connection, of IPv6 the
// /64 network, which is the least that one customer has. Behind a proxy it is the address of the proxy.
func ByPeer(ctx context.Context, _ Call) string {
	p, ok := peer.FromContext(ctx)
	if !ok || p.Addr == nil {
		return ""
	}
	tcp, ok := p.Addr.(*net.TCPAddr)
	if !ok {
		return p.Addr.String()
	}
	ip := tcp.AddrPort().Addr().Unmap()
	if ip.Is6() {
		return netip.PrefixFrom(ip, 64).Masked().String()
	}
	return ip.String()
}

// maxValue is how long a method or a value of metadata may be to be kept as it is.
const maxValue = 128

// ByMetadata returns a key function for the first value of the metadata of that name, such as
// "x-api-key". Calls without it have the key "", and so share one limit. A value of more than 128 bytes
// is replaced by its SHA-256, so that clients cannot fill the memory with long keys.
//
// A client may send any value, and a new one with each call. Unless the values are checked before,
// limit by [ByPeer] too.
func ByMetadata(name string) func(context.Context, Call) string {
	return func(ctx context.Context, _ Call) string {
		values := metadata.ValueFromIncomingContext(ctx, name)
		if len(values) == 0 {
			return ""
		}
		return bounded(values[0])
	}
}

// bounded is what is kept of a word that a client may have chosen.
func bounded(word string) string {
	if len(word) <= maxValue {
		return word
	}
	sum := sha256.Sum256([]byte(word))
	return string(sum[:])
}
