package weirhttp_test

import (
	"bytes"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/weirhttp"
)

// countMissingRouteLogs returns how often slog.Default logged a missing route during f.
func countMissingRouteLogs(t *testing.T, f func()) int {
	before := slog.Default()
	defer slog.SetDefault(before)
	var log bytes.Buffer
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	f()
	n := strings.Count(log.String(), "http.Request.Pattern is empty")
	require.Equal(t, n, strings.Count(log.String(), "level=ERROR"))
	require.NotContains(t, log.String(), "secret", "a path may be secret")
	return n
}

func TestByRouteLogsAMissingRouteOnce(t *testing.T) {
	mux := http.NewServeMux()
	for what, c := range map[string]struct {
		by   func(*http.Request) string
		want int
	}{
		"by route":                 {weirhttp.ByRoute(nil), 1},
		"by route and address":     {weirhttp.Combine(weirhttp.ByIP, weirhttp.ByRoute(nil)), 1},
		"by the route of a mux":    {weirhttp.ByRoute(mux), 0},
		"by address":               {weirhttp.ByIP, 0},
		"by a function of its own": {func(r *http.Request) string { return r.Pattern }, 0},
	} {
		limit := weirhttp.NewLimit(weirhttp.LimitConfig{Policies: []weirhttp.Policy{policyPerMinute(100, c.by)}})
		inner := http.NewServeMux()
		inner.Handle("/a", limit.Handler(okHandler))
		require.Zero(t, countMissingRouteLogs(t, func() { request{path: "/a"}.send(inner) }), what)
		require.Equal(t, c.want, countMissingRouteLogs(t, func() {
			for range 5 {
				request{path: "/secret"}.send(limit.Handler(okHandler))
			}
		}), what)
	}
}

// Middleware in front of a limit can read the route from its request.
func TestPatternIsVisibleOutsideALimit(t *testing.T) {
	mux := http.NewServeMux()
	mux.Handle("GET /a/{id}", okHandler)
	limit := weirhttp.NewLimit(weirhttp.LimitConfig{
		Policies: []weirhttp.Policy{policyPerMinute(9, weirhttp.ByIP)}, Proxies: weirhttp.Proxies{Trusted: parseNetworks("192.0.2.0/24")},
	})
	var seen string
	request{path: "/a/1", from: "192.0.2.1:1", headers: http.Header{"X-Forwarded-For": {"198.51.100.7"}}}.send(
		http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			limit.Handler(mux).ServeHTTP(w, r)
			seen = r.Pattern
		}))
	require.Equal(t, "GET /a/{id}", seen)
}
