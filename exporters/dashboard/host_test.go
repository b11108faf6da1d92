package dashboard_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/exporters/dashboard"
)

// statusForHost requests each endpoint under a host name, over an interface.
func statusForHost(t *testing.T, c dashboard.Config, host, at string) (status int) {
	t.Helper()
	page := newPage(c)
	for _, path := range []string{"/", "/snapshot.json", "/source.json", "/assets/x/page.js"} {
		r := httptest.NewRequest(http.MethodGet, path, http.NoBody)
		r.Host = host
		if at != "" {
			addr, err := net.ResolveTCPAddr("tcp", at)
			require.NoError(t, err)
			r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, net.Addr(addr)))
		}
		w := httptest.NewRecorder()
		page.ServeHTTP(w, r)
		if w.Code == http.StatusForbidden {
			require.NotContains(t, w.Body.String(), "<")
			status = w.Code
		} else {
			require.NotEqual(t, http.StatusForbidden, status, "only %s is served", path)
		}
	}
	return status
}

func TestHostNames(t *testing.T) {
	const here, there = "127.0.0.1:8080", "10.1.2.3:8080"
	for _, c := range []struct {
		hosts    []string
		host, at string
		answered bool
	}{
		{nil, "evil.example:8080", here, false},
		{nil, "evil.example", "[::1]:8080", false},
		{nil, "EVIL.example.:8080", here, false},
		{nil, "127.0.0.1.evil.example", here, false},
		{nil, "127.0.0.1:8080", here, true},
		{nil, "[::1]:8080", "[::1]:8080", true},
		{nil, "[fe80::1%25eth0]", here, true},
		{nil, "localhost:8080", here, true},
		{nil, "shop.localhost", here, true},
		{nil, "prometheus:8080", here, true},
		{nil, "", here, true},
		{nil, "debug.shop.example", there, true},
		{nil, "debug.shop.example", "", true},
		{[]string{"debug.shop.example"}, "debug.shop.example:443", here, true},
		{[]string{"debug.shop.example"}, "Debug.Shop.Example.", there, true},
		{[]string{"debug.shop.example"}, "evil.example", there, false},
		{[]string{"debug.shop.example"}, "evil.example", "", false},
		{[]string{"debug.shop.example"}, "10.1.2.3:8080", there, true},
		{[]string{"*"}, "evil.example", here, true},
	} {
		require.Equal(t, c.answered, statusForHost(t, dashboard.Config{Hosts: c.hosts}, c.host, c.at) == 0, "%+v", c)
	}
}

func TestInvalidHosts(t *testing.T) {
	for _, bad := range []string{"", "shop:80", "http://shop", "*.shop.example", "[::1]"} {
		require.ErrorContains(t, dashboard.Config{Hosts: []string{"ok.example", bad}}.Validate(), "dashboard: Hosts[1] is ")
	}
}

// An http.Server reports the interface of a request.
func TestServerOnLoopbackRefusesOtherNames(t *testing.T) {
	server := httptest.NewServer(newDefaultPage())
	defer server.Close()
	for host, want := range map[string]int{"": http.StatusOK, "localhost": http.StatusOK, "evil.example": http.StatusForbidden} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/snapshot.json", http.NoBody)
		require.NoError(t, err)
		r.Host = host
		response, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		require.Equal(t, want, response.StatusCode, host)
	}
}
