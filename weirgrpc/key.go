package weirgrpc

import (
	"context"
	"crypto/sha256"
	"net"
	"net/netip"

	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
)

// ByMethod is a key for [LimitBy]: the method in full. One of more than 128 bytes, which
// clients can choose where there is a grpc.UnknownServiceHandler, is kept as its SHA-256.
func ByMethod(_ context.Context, c Call) string { return bounded(c.Method) }

// ByPeer is a key for [LimitBy]: the address of the other end of the connection. Of
// IPv4 it is the address, of IPv6 the network of 64 bits, which is what one customer
// has, and of other networks what they call it. Behind a proxy that is the proxy.
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

// ByMetadata returns a key for [LimitBy]: the first value of the metadata of that name,
// such as "x-api-key". Calls without it have the key "", and share one limit. A value of
// more than 128 bytes is kept as its SHA-256, so that nobody fills the memory with it.
//
// A client may send what it likes, and another value for each call. Where nobody has
// checked the value before, limit by [ByPeer] too.
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
