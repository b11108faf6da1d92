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

// Call describes a call before it is made or served.
type Call struct {
	// Method is the full name of the method, such as "/shop.Stock/Get".
	Method string
	// Target is the target of the connection as given to grpc.NewClient, such as
	// "dns:///stock:443". It is empty on a server.
	Target string
}

// ByMethod is a key function. It returns the full name of the method. Clients can choose long names
// if the server has a grpc.UnknownServiceHandler, so a name of more than 128 bytes is replaced by
// its SHA-256.
func ByMethod(_ context.Context, c Call) string { return boundedKey(c.Method) }

// ByService is a key function. It returns the service of the method, such as "shop.Stock". A name
// of more than 128 bytes is replaced by its SHA-256.
func ByService(_ context.Context, c Call) string {
	name := strings.TrimPrefix(c.Method, "/")
	if i := strings.LastIndexByte(name, '/'); i >= 0 {
		name = name[:i]
	}
	if len(c.Method) > maxKey {
		name = strings.Clone(name) // a substring would keep the method in memory
	}
	return boundedKey(name)
}

// ByPeer is a key function. It returns the address of the peer. For IPv6 it returns the /64
// network, the smallest that a single customer has. If the peer is a proxy, all its clients have
// the same key.
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

// ByMetadata returns a key function for the first value of the incoming metadata of that name, such
// as "x-api-key". Calls without it have the key "", and so share one limit. A value of more than
// 128 bytes is replaced by its SHA-256.
//
// A client can send any value, and a new one with each call. Unless the values are verified before,
// limit by [ByPeer] too.
func ByMetadata(name string) func(context.Context, Call) string {
	return func(ctx context.Context, _ Call) string {
		values := metadata.ValueFromIncomingContext(ctx, name)
		if len(values) == 0 {
			return ""
		}
		return boundedKey(values[0])
	}
}

// maxKey is the length up to which a key is stored unchanged.
const maxKey = 128

// boundedKey returns a key that clients may have chosen, or its SHA-256 if it is long.
func boundedKey(key string) string {
	if len(key) <= maxKey {
		return key
	}
	sum := sha256.Sum256([]byte(key))
	return string(sum[:])
}
