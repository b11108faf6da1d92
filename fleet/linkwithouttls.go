package fleet

import (
	"context"
	"crypto/tls"
	"errors"
	"maps"
	"net"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"
)

var errNoTLS = errors.New("tls: the server answers without TLS")

// answersWithoutTLS reports whether the client has TLS settings but its server answers without TLS.
// Redis then waits for the end of a line in the TLS handshake, so the dial times out without an
// error that says so.
func answersWithoutTLS(ctx context.Context, client redis.UniversalClient, timeout time.Duration) bool {
	addrs, secure := endpoints(client)
	return secure && anyServer(ctx, addrs, timeout, answersPing)
}

var errWantsTLS = errors.New("tls: the server wants TLS, and the client has no TLSConfig")

// wantsTLS reports whether a client has no TLS settings but its server accepts a TLS handshake.
// Redis then closes the connection without an error that says so.
func wantsTLS(ctx context.Context, client redis.UniversalClient, timeout time.Duration) bool {
	addrs, secure := endpoints(client)
	return !secure && anyServer(ctx, addrs, timeout, acceptsTLS)
}

// endpoints returns the addresses that a client was given, and whether it has TLS settings.
func endpoints(client redis.UniversalClient) (addrs []string, secure bool) {
	switch c := client.(type) {
	case *redis.Client:
		if o := c.Options(); o.Network == "tcp" {
			return []string{o.Addr}, o.TLSConfig != nil
		}
	case *redis.ClusterClient:
		return c.Options().Addrs, c.Options().TLSConfig != nil
	case *redis.Ring:
		return slices.Collect(maps.Values(c.Options().Addrs)), c.Options().TLSConfig != nil
	}
	return nil, false
}

// anyServer reports whether a check succeeds for one of the addresses.
func anyServer(ctx context.Context, addrs []string, timeout time.Duration, check func(context.Context, string) bool) bool {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return slices.ContainsFunc(addrs, func(addr string) bool { return check(ctx, addr) })
}

// acceptsTLS reports whether the server at an address accepts a TLS handshake. Nothing secret is
// sent, so the certificate does not matter.
func acceptsTLS(ctx context.Context, addr string) bool {
	dialer := tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}} //nolint:gosec // see above
	conn, err := dialer.DialContext(ctx, "tcp", addr)
	if err != nil {
		return false
	}
	_ = conn.Close()
	return true
}

// answersPing reports whether the server at an address answers PING without TLS, be it with an
// error.
func answersPing(ctx context.Context, addr string) bool {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return false
	}
	defer func() { _ = conn.Close() }()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	var first [1]byte
	if _, err = conn.Write([]byte("PING\r\n")); err == nil {
		_, err = conn.Read(first[:])
	}
	return err == nil && (first[0] == '+' || first[0] == '-')
}
