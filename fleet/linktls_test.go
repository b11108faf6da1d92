package fleet_test

import (
	"crypto/tls"
	"crypto/x509"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/fleet"
	"github.com/weir-go/weir/fleet/internal/redistest"
	"github.com/weir-go/weir/internal/testenv"
)

const noTLSMessage = "fleet: redis main: no TLS with an accepted certificate"

// The client repeats a dial for longer than a decision may take. Connect reports the reason
// nevertheless.
func TestConnectSaysWhyThereIsNoTLS(t *testing.T) {
	t.Parallel()
	sealed, plain := redistest.Options{TLS: true}.Start(t), redistest.Start(t)
	own := sealed.Options().TLSConfig
	for name, c := range map[string]struct {
		addr string
		tls  *tls.Config
	}{
		"an authority that is not trusted": {sealed.Addr(), &tls.Config{RootCAs: x509.NewCertPool()}},
		"another name":                     {sealed.Addr(), &tls.Config{RootCAs: own.RootCAs, ServerName: "redis.example"}},
		"a port without TLS":               {plain.Addr(), &tls.Config{RootCAs: own.RootCAs}},
		"a client without TLS":             {sealed.Addr(), nil},
	} {
		for kind, client := range map[string]redis.UniversalClient{
			"client":  redis.NewClient(&redis.Options{Addr: c.addr, TLSConfig: c.tls, ContextTimeoutEnabled: true}),
			"cluster": redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{c.addr}, TLSConfig: c.tls, ContextTimeoutEnabled: true}),
			"ring": redis.NewRing(&redis.RingOptions{
				Addrs: map[string]string{"a": c.addr}, TLSConfig: c.tls, ContextTimeoutEnabled: true, HeartbeatFrequency: time.Hour,
			}),
		} {
			t.Run(name+", "+kind, func(t *testing.T) {
				defer func() { require.NoError(t, client.Close()) }()
				began := testenv.Running()
				_, err := fleet.Connect(t.Context(), "main", client, fleet.LinkConfig{Timeout: time.Second})
				require.EqualError(t, err, noTLSMessage)
				require.ErrorIs(t, err, fleet.ErrServer)
				require.NotErrorIs(t, err, fleet.ErrUnavailable)
				var store *fleet.StoreError
				require.ErrorAs(t, err, &store)
				require.ErrorContains(t, store.Unwrap(), "tls: ")
				require.Less(t, testenv.Running()-began, 2*time.Second+timeoutSlack)
			})
		}
	}
}

func TestALinkWorksOverTLS(t *testing.T) {
	s := redistest.Options{TLS: true}.Start(t)
	o := s.Options()
	o.ContextTimeoutEnabled = true
	c := redis.NewClient(o)
	defer func() { require.NoError(t, c.Close()) }()
	l := connectTo(t, c, fleet.LinkConfig{Timeout: longTimeout})
	r, err := newBucket(l, errorOnOutage).Take(t.Context(), "user", 1)
	require.NoError(t, err)
	require.True(t, r.OK)
	require.NoError(t, l.Err())
}

func TestALinkSaysWhyItsServerIsUnavailable(t *testing.T) {
	proxy := redistest.NewProxy(t, redistest.Start(t).Addr())
	proxy.Refuse()
	c := redis.NewClient(&redis.Options{Addr: proxy.Addr(), ContextTimeoutEnabled: true})
	defer func() { require.NoError(t, c.Close()) }()
	l, err := fleet.Connect(t.Context(), "main", c, fleet.LinkConfig{Timeout: longTimeout})
	require.NoError(t, err)
	require.EqualError(t, l.Err(), "fleet: redis main: no connection")
	require.ErrorIs(t, l.Err(), fleet.ErrUnavailable)
	var store *fleet.StoreError
	require.ErrorAs(t, l.Err(), &store)
	require.ErrorContains(t, store.Unwrap(), "connection refused")
	require.NotContains(t, l.Err().Error(), "127.0.0.1")
}

// The certificate of a server may change while the link is in use.
func TestALinkSaysThatTheCertificateIsNoLongerAccepted(t *testing.T) {
	t.Parallel()
	sealed, other := redistest.Options{TLS: true}.Start(t), redistest.Options{TLS: true}.Start(t)
	proxy := redistest.NewProxy(t, sealed.Addr())
	c := redis.NewClient(&redis.Options{Addr: proxy.Addr(), TLSConfig: sealed.Options().TLSConfig, ContextTimeoutEnabled: true})
	defer func() { require.NoError(t, c.Close()) }()
	l := connectTo(t, c, fleet.LinkConfig{Timeout: 300 * ms, Breaker: breaker.Config{ConsecutiveFailures: 100, MinCalls: 100}})
	b := newBucket(l, errorOnOutage)
	require.Eventually(t, func() bool {
		_, err := b.Take(t.Context(), "user", 1)
		return err == nil
	}, time.Minute, ms, "the first handshake takes long on a slow machine")
	proxy.Lead(other.Addr())
	require.Eventually(t, func() bool {
		_, err := b.Take(t.Context(), "user", 1)
		var store *fleet.StoreError
		require.ErrorAs(t, err, &store)
		require.ErrorIs(t, err, fleet.ErrUnavailable)
		return store.Fault == fleet.FaultNoTLS
	}, time.Minute, ms)
}
