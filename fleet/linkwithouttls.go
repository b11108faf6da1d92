package fleet

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"time"

	"github.com/redis/go-redis/v9"
)

var errNoTLS = errors.New("tls: the server answers without TLS")

// answersWithoutTLS reports whether the client has TLS settings but its server answers without TLS.
// Redis then waits for the end of a line in the TLS handshake, so the dial times out without an
// error that says so.
func answersWithoutTLS(ctx context.Context, client redis.UniversalClient, timeout time.Duration) bool {
	var secure *tls.Config
	var addrs []string
	switch c := client.(type) {
	case *redis.Client:
		secure, addrs = c.Options().TLSConfig, []string{c.Options().Addr}
	case *redis.ClusterClient:
		secure, addrs = c.Options().TLSConfig, c.Options().Addrs
	}
	if secure == nil {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	for _, addr := range addrs {
		if answersPing(ctx, addr) {
			return true
		}
	}
	return false
}

var errWantsTLS = errors.New("tls: the server wants TLS, and the client has no TLSConfig")

// wantsTLS reports whether a client has no TLS settings but its server accepts a TLS handshake.
// Redis then closes the connection without an error that says so. Nothing secret is sent, so the
// certificate does not matter.
func wantsTLS(ctx context.Context, client redis.UniversalClient, timeout time.Duration) bool {
	var addrs []string
	switch c := client.(type) {
	case *redis.Client:
		if o := c.Options(); o.TLSConfig == nil && o.Network == "tcp" {
			addrs = []string{o.Addr}
		}
	case *redis.ClusterClient:
		if o := c.Options(); o.TLSConfig == nil {
			addrs = o.Addrs
		}
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	for _, addr := range addrs {
		dialer := tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}} //nolint:gosec // see above
		if conn, err := dialer.DialContext(ctx, "tcp", addr); err == nil {
			_ = conn.Close()
			return true
		}
	}
	return false
}

// answersPing reports whether the server at an address answers PING without TLS, be it with an
// error.
func answersPing(ctx context.Context, addr string) bool {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return false
	}
	defer func() { _ = conn.Close() }()
	due, _ := ctx.Deadline()
	_ = conn.SetDeadline(due) // a connection that refuses it fails at once
	var first [1]byte
	if _, err = conn.Write([]byte("PING\r\n")); err == nil {
		_, err = conn.Read(first[:])
	}
	return err == nil && (first[0] == '+' || first[0] == '-')
}
