package weirhttp_test

import (
	"bytes"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/weirhttp"
)

// logged returns how often slog.Default logged a missing route while f ran.
func logged(t *testing.T, f func()) int {
	before := slog.Default()
	defer slog.SetDefault(before)
	var log bytes.Buffer
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	f()
	n := strings.Count(log.String(), "http.Request.Pattern is empty")
	require.Equal(t, n, strings.Count(log.String(), "level=ERROR"))
	require.NotContains(t, log.String(), "secret", "a path may be one")
	return n
}

func TestALimitByRouteThatSeesNoRouteSaysSoOnce(t *testing.T) {
	routes := []weirhttp.Match{{Routes: []string{"/healthz"}}}
	plain := weirhttp.Policy{Name: "minute", Limit: 100, Span: time.Minute}
	byRoute, only, except := plain, plain, plain
	byRoute.By, only.Only, except.Except = weirhttp.ByIP|weirhttp.ByRoute, routes, routes
	of := func(p weirhttp.Policy) weirhttp.LimitConfig {
		return weirhttp.LimitConfig{Policies: []weirhttp.Policy{p}}
	}
	exempt, told := of(plain), of(byRoute)
	exempt.Exempt = routes
	told.Route = func(*http.Request) string { return "" }
	for what, c := range map[string]struct {
		config weirhttp.LimitConfig
		want   int
	}{
		"a policy by route": {of(byRoute), 1}, "Only": {of(only), 1}, "Except": {of(except), 1}, "Exempt": {exempt, 1},
		"no word of routes": {of(plain), 0}, "a Route of one's own": {told, 0},
	} {
		limit := weirhttp.NewLimit(c.config)
		require.Equal(t, c.want, logged(t, func() {
			for range 5 {
				request{path: "/secret"}.send(limit.Handler(okHandler))
			}
		}), what)
		mux := http.NewServeMux()
		mux.Handle("/a", limit.Handler(okHandler))
		require.Zero(t, logged(t, func() { request{path: "/a"}.send(mux) }), what)
	}
}

func TestBreakersThatSeeNoRouteSaySoOnce(t *testing.T) {
	guard := weirhttp.Breakers(breaker.NewGroup[string]("b", breaker.GroupConfig{}), weirhttp.BreakerConfig{})
	require.Equal(t, 1, logged(t, func() {
		for range 5 {
			request{path: "/secret"}.send(guard(okHandler))
		}
	}))
}
