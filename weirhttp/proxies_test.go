package weirhttp_test

import (
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/testenv"
	"github.com/weir-go/weir/weirhttp"
)

func parseNetworks(list ...string) (all []netip.Prefix) {
	for _, s := range list {
		all = append(all, netip.MustParsePrefix(s))
	}
	return all
}

// proxyCases are requests, and the addresses of their clients. The proxies are in 10.0.0.0/8 and
// fd00::/8.
var proxyCases = []struct {
	what   string
	peer   string
	header string // the default if empty
	lines  []string
	want   string
}{
	{"no header", "192.0.2.1:80", "", nil, "192.0.2.1"},
	{"a peer that is no proxy makes something up", "192.0.2.1:80", "", []string{"8.8.8.8"}, "192.0.2.1"},
	{"a proxy", "10.0.0.1:80", "", []string{"192.0.2.7"}, "192.0.2.7"},
	{"a proxy and a client that makes something up", "10.0.0.1:80", "", []string{"8.8.8.8, 192.0.2.7"}, "192.0.2.7"},
	{"a client that calls itself a proxy", "10.0.0.1:80", "", []string{"10.6.6.6, 192.0.2.7"}, "192.0.2.7"},
	{"two proxies", "10.0.0.1:80", "", []string{"192.0.2.7, 10.0.0.2"}, "192.0.2.7"},
	{"two proxies on two lines", "10.0.0.1:80", "", []string{"8.8.8.8,192.0.2.7", "10.0.0.2"}, "192.0.2.7"},
	{"a client that sends a line of its own", "10.0.0.1:80", "", []string{"8.8.8.8", "192.0.2.7"}, "192.0.2.7"},
	{"proxies all the way", "10.0.0.1:80", "", []string{"10.0.0.3, 10.0.0.2"}, "10.0.0.3"},
	{"more proxies than there are", "10.0.0.1:80", "", []string{"192.0.2.7" + strings.Repeat(", 10.0.0.9", 40)}, "10.0.0.9"},
	{"a proxy and no header", "10.0.0.1:80", "", nil, "10.0.0.1"},
	{"garbage from a proxy", "10.0.0.1:80", "", []string{"192.0.2.7, unknown"}, "10.0.0.1"},
	{"garbage behind a proxy", "10.0.0.1:80", "", []string{"192.0.2.7, 1.2.3, 10.0.0.2"}, "10.0.0.2"},
	{"empty elements", "10.0.0.1:80", "", []string{"192.0.2.7, ,,", ""}, "192.0.2.7"},
	{"spaces and tabs", "10.0.0.1:80", "", []string{"8.8.8.8,\t 192.0.2.7 \t"}, "192.0.2.7"},
	{"with a port", "10.0.0.1:80", "", []string{"192.0.2.7:1234"}, "192.0.2.7"},
	{"a port that is none", "10.0.0.1:80", "", []string{"192.0.2.7:99999"}, "10.0.0.1"},
	{"IPv6", "[fd00::1]:80", "", []string{"2001:db8::7"}, "2001:db8::7"},
	{"IPv6 in brackets", "[fd00::1]:80", "", []string{"[2001:db8::7]"}, "2001:db8::7"},
	{"IPv6 with a port", "[fd00::1]:80", "", []string{"[2001:db8::7]:443"}, "2001:db8::7"},
	{"IPv6 with a zone", "[fd00::1]:80", "", []string{"fe80::7%eth0"}, "fe80::7"},
	{"a proxy with a zone", "[fd00::1%eth0]:80", "", []string{"2001:db8::7"}, "2001:db8::7"},
	{"IPv4 in IPv6", "[::ffff:10.0.0.1]:80", "", []string{"::ffff:192.0.2.7"}, "192.0.2.7"},
	{"a peer without address", "@", "", []string{"192.0.2.7"}, "invalid IP"},
	{"a peer without port", "192.0.2.1", "", nil, "192.0.2.1"},
	{"the other header is the client's", "10.0.0.1:80", "X-Real-Ip", nil, "10.0.0.1"},

	{"Forwarded", "10.0.0.1:80", "Forwarded", []string{`for=192.0.2.7;proto=https;by=10.0.0.1`}, "192.0.2.7"},
	{"Forwarded in capitals", "10.0.0.1:80", "forwarded", []string{`Proto=https; FOR=192.0.2.7`}, "192.0.2.7"},
	{"Forwarded IPv6", "10.0.0.1:80", "Forwarded", []string{`For="[2001:db8:cafe::17]:4711"`}, "2001:db8:cafe::17"},
	{"Forwarded twice", "10.0.0.1:80", "Forwarded", []string{`for=8.8.8.8, for=192.0.2.7, for=10.0.0.9`}, "192.0.2.7"},
	{"Forwarded hidden", "10.0.0.1:80", "Forwarded", []string{`for=8.8.8.8, for=_secret`}, "10.0.0.1"},
	{"Forwarded without for", "10.0.0.1:80", "Forwarded", []string{`for=8.8.8.8, proto=http`}, "10.0.0.1"},
	{"Forwarded with two for", "10.0.0.1:80", "Forwarded", []string{`for=8.8.8.8;for=192.0.2.7`}, "10.0.0.1"},
	{"a quotation mark that never ends", "10.0.0.1:80", "Forwarded", []string{`for="8.8.8.8, for=192.0.2.7`}, "192.0.2.7"},
	{"a list in a quoted host", "10.0.0.1:80", "Forwarded", []string{`for=192.0.2.7;host="a, for=8.8.8.8"`}, "192.0.2.7"},
	{"a parameter in a quoted host", "10.0.0.1:80", "Forwarded", []string{`for=192.0.2.7;host="a;for=8.8.8.8;x="`}, "192.0.2.7"},
	{"an escaped quotation mark in a quoted host", "10.0.0.1:80", "Forwarded", []string{`for=192.0.2.7;host="a\", for=8.8.8.8"`}, "192.0.2.7"},
	{"half a quotation", "10.0.0.1:80", "Forwarded", []string{`for="192.0.2.7`}, "10.0.0.1"},
	{"the 32nd element is the client", "10.0.0.1:80", "", []string{"192.0.2.7" + strings.Repeat(",10.0.0.9", 31)}, "192.0.2.7"},
	{"the 33rd element is the client", "10.0.0.1:80", "", []string{"192.0.2.7" + strings.Repeat(",10.0.0.9", 32)}, "10.0.0.9"},
}

func TestClientIPTrustsOnlyTrustedProxies(t *testing.T) {
	trusted := parseNetworks("10.0.0.0/8", "fd00::/8")
	for _, c := range proxyCases {
		t.Run(c.what, func(t *testing.T) {
			p := weirhttp.Proxies{Trusted: trusted, Header: c.header}
			r := &http.Request{RemoteAddr: c.peer, Header: http.Header{}}
			name := c.header
			if name == "" || name == "X-Real-Ip" {
				name = "X-Forwarded-For"
			}
			for _, line := range c.lines {
				r.Header.Add(name, line)
			}
			require.Equal(t, c.want, p.ClientIP(r).String(), "ClientIP of %s with %q", c.peer, c.lines)
		})
	}
}

func TestClientIPWithoutTrustedProxiesIgnoresHeaders(t *testing.T) {
	r := &http.Request{RemoteAddr: "127.0.0.1:1", Header: http.Header{
		"X-Forwarded-For": {"8.8.8.8"}, "Forwarded": {"for=8.8.8.8"}, "X-Real-Ip": {"8.8.8.8"}, "True-Client-Ip": {"8.8.8.8"},
	}}
	require.Equal(t, "127.0.0.1", weirhttp.Proxies{}.ClientIP(r).String())
}

func TestClientIPOfAMegabyteOfHopsIsFast(t *testing.T) {
	trusted := weirhttp.Proxies{Trusted: parseNetworks("10.0.0.0/8")}
	for _, list := range []string{
		strings.Repeat("10.0.0.9,", 1<<20/9), strings.Repeat(",", 1<<20), strings.Repeat("x", 1<<20), strings.Repeat(`"`, 1<<20),
		strings.Repeat(`\"`, 1<<19), strings.Repeat("9", 1<<20) + ",10.0.0.9",
	} {
		for _, header := range []string{"X-Forwarded-For", "Forwarded"} {
			trusted.Header = header
			r := &http.Request{RemoteAddr: "10.0.0.1:1", Header: http.Header{header: {list}}}
			start := testenv.Running()
			require.True(t, trusted.ClientIP(r).Is4())
			require.Less(t, testenv.Running()-start, time.Second, "%.20q…", list)
		}
	}
}

func TestProxiesFaults(t *testing.T) {
	validate := func(p weirhttp.Proxies) error { return weirhttp.LimitConfig{Proxies: p}.Validate() }
	err := validate(weirhttp.Proxies{Trusted: []netip.Prefix{{}, netip.MustParsePrefix("::ffff:10.0.0.0/104")}})
	require.EqualError(t, err, "weirhttp: Proxies.Trusted: invalid Prefix is not a network\n"+
		"weirhttp: Proxies.Trusted: ::ffff:10.0.0.0/104 is an IPv4 network in IPv6 form, must be in IPv4 form")
	require.EqualError(t, validate(weirhttp.Proxies{Header: "X Forwarded"}), `weirhttp: Proxies.Header is "X Forwarded", must be the name of a header`)
	require.NoError(t, validate(weirhttp.Proxies{Trusted: parseNetworks("10.0.0.0/8", "::1/128"), Header: "Forwarded"}))
}

func FuzzClientIPIgnoresTextBeforeAnUntrustedHop(f *testing.F) {
	for _, s := range []string{"", "8.8.8.8", `for="`, `\`, `for=1.1.1.1;host="`, ",", `",`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, made string) {
		for header, hop := range map[string]string{"X-Forwarded-For": "192.0.2.7", "Forwarded": `for=192.0.2.7;host="a,b"`} {
			p := weirhttp.Proxies{Trusted: parseNetworks("10.0.0.0/8"), Header: header}
			r := &http.Request{RemoteAddr: "10.0.0.1:1", Header: http.Header{header: {made + ", " + hop}}}
			require.Equal(t, "192.0.2.7", p.ClientIP(r).String())
		}
	})
}
