package weirhttp_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/internal/instrument"
	"github.com/weir-go/weir/weirhttp"
)

func TestByHostReturnsTheSameKeyForEverySpelling(t *testing.T) {
	for _, c := range []struct{ url, want string }{
		{"https://api.example.com/a?b", "api.example.com"},
		{"https://API.Example.COM/", "api.example.com"},
		{"https://api.example.com:443/", "api.example.com"},
		{"https://api.example.com:0443/", "api.example.com"},
		{"http://api.example.com:80/", "api.example.com"},
		{"http://api.example.com:443/", "api.example.com:443"},
		{"https://api.example.com:80/", "api.example.com:80"},
		{"https://API.example.com:8443/", "api.example.com:8443"},
		{"https://api.example.com:08443/", "api.example.com:8443"},
		{"https://api.example.com:/", "api.example.com"},
		{"https://api.example.com./", "api.example.com"},
		{"https://api.example.com.:443/", "api.example.com"},
		{"https://user:pa%40ss@api.example.com/", "api.example.com"},
		{"http://127.0.0.1:8080/", "127.0.0.1:8080"},
		{"http://[::1]/", "[::1]"},
		{"http://[::1]:80/", "[::1]"},
		{"http://[::1]:8080/", "[::1]:8080"},
		{"http://[0:0:0:0:0:0:0:1]:8080/", "[::1]:8080"},
		{"http://[2001:DB8::A]/", "[2001:db8::a]"},
		{"http://[FE80::1%25Eth0]:8080/", "[fe80::1%Eth0]:8080"},
		{"http://[FE80::1%25eth1]/", "[fe80::1%eth1]"},
		{"https://BÜCHER.example/", "bÜcher.example"},
		{"ftp://Example.com/", "ftp://Example.com"},
	} {
		u, err := url.Parse(c.url)
		require.NoError(t, err, c.url)
		require.Equal(t, c.want, weirhttp.ByHost(&http.Request{URL: u}), c.url)
	}
}

func TestByHostOfInvalidRequests(t *testing.T) {
	for _, c := range []struct {
		u    *url.URL
		want string
	}{
		{nil, ""},
		{&url.URL{Scheme: "http"}, ""},
		{&url.URL{Scheme: "http", Host: ":80"}, ""},
		{&url.URL{Scheme: "http", Host: ":"}, ""},
		{&url.URL{Scheme: "http", Host: "["}, "["},
		{&url.URL{Scheme: "http", Host: "[]:80"}, "[]"},
		{&url.URL{Scheme: "http", Host: "::1"}, "::1"},
		{&url.URL{Scheme: "https", Host: "me@a.example"}, "a.example"},
		{&url.URL{Scheme: "https", Host: "A\xff.example"}, "a\xff.example"},
		{&url.URL{Scheme: "https", Host: strings.Repeat("x", 1<<20)}, strings.Repeat("x", 300)},
	} {
		require.Equal(t, c.want, weirhttp.ByHost(&http.Request{URL: c.u}), "%+v", c.u)
	}
}

func TestByHostOfAPlainHostAllocatesNothing(t *testing.T) {
	for _, raw := range []string{"https://api.example.com/", "https://api.example.com:443/", "http://127.0.0.1:8080/"} {
		req := newGet(t, raw)
		held := weirhttp.ByHost(req) // package unique keeps the string while it is referenced
		require.Zero(t, testing.AllocsPerRun(100, func() { weirhttp.ByHost(req) }), raw)
		require.NotEmpty(t, held)
	}
}

// A flood of hosts, for example from a crawler, fills the group. The failing host is not evicted,
// and requests to hosts without room are not guarded.
func TestFloodOfHostsIsBoundedAndEvictsNoFailingHost(t *testing.T) {
	const most = 200
	// longer than the flood
	gate := weir.Config{Breaker: breaker.Config{FailureRun: breaker.Off, Cooldown: time.Hour}}
	hosts := weir.NewGroup[string]("hosts", weir.GroupConfig{Gate: gate, MaxKeys: most, MaxSeries: 10})
	base := baseFunc(func(req *http.Request) (*http.Response, error) {
		if req.URL.Host == "down.example" {
			return newResponse(http.StatusInternalServerError), nil
		}
		return newResponse(http.StatusOK), nil
	})
	transport := weirhttp.NewTransport(weirhttp.Per(hosts, weirhttp.ByHost), weirhttp.TransportConfig{Base: base})
	for range 20 {
		sendAllowed(t, transport, "https://down.example/")
	}
	for i := range 20 * most {
		sendAllowed(t, transport, fmt.Sprintf("https://h%d.example/", i))
	}

	_, err := transport.RoundTrip(newGet(t, "https://DOWN.example:443/"))
	require.ErrorIs(t, err, breaker.ErrOpen)
	require.LessOrEqual(t, hosts.Len(), most)
	for s, v := range hosts.Observe {
		if s.Instrument.Name == "weir.breaker.group.unguarded" {
			require.Positive(t, v, "the metric counts the calls without room")
		}
	}

	labels := map[string]bool{}
	for s := range hosts.Observe {
		if s.Instrument == instrument.BreakerCalls {
			labels[s.Values[len(s.Values)-1]] = true
		}
	}
	require.Len(t, labels, 10+1, "ten hosts, and one label for all others")
}

func TestFloodOfFailingHostsIsBounded(t *testing.T) {
	hosts := weir.NewGroup[string]("hosts", weir.GroupConfig{MaxKeys: 100})
	transport := weirhttp.NewTransport(weirhttp.Per(hosts, weirhttp.ByHost), weirhttp.TransportConfig{Base: baseFunc(func(*http.Request) (*http.Response, error) {
		return nil, errDown
	})})
	for i := range 10_000 {
		_, err := transport.RoundTrip(newGet(t, fmt.Sprintf("https://h%d.example/", i)))
		require.ErrorIs(t, err, errDown)
	}
	require.LessOrEqual(t, hosts.Len(), 100)
}

func FuzzHost(f *testing.F) {
	for _, s := range []string{"a.example", "A.example:443", "[::1%25x]:80", "u@h:0", "[", "]:", "::1", ".", "@", "A\xff", "..:1", ".:1"} {
		f.Add("https", s)
	}
	f.Fuzz(func(t *testing.T, scheme, host string) {
		once := weirhttp.ByHost(&http.Request{URL: &url.URL{Scheme: scheme, Host: host}})
		require.LessOrEqual(t, len(once), 300)
		if scheme != "http" && scheme != "https" || strings.ContainsAny(host, "@[]") || strings.Contains(host, "..") || len(host) > 250 {
			return // a name with an empty label is not a host
		}
		again := weirhttp.ByHost(&http.Request{URL: &url.URL{Scheme: scheme, Host: once}})
		require.Equal(t, once, again, "ByHost does not change its own result")
	})
}

func TestGateFunctionsNeedTheirParts(t *testing.T) {
	require.PanicsWithError(t, "weirhttp: ForAll needs a gate", func() { weirhttp.ForAll(nil) })
	require.Panics(t, func() { weirhttp.Per[string](nil, weirhttp.ByHost) })
	require.Panics(t, func() { weirhttp.Per(weir.NewGroup[string]("g", weir.GroupConfig{}), nil) })
}
