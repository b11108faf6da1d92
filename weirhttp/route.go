package weirhttp

import (
	"log/slog"
	"net/http"
	"sync"
)

// pattern is the default Route.
func pattern(r *http.Request) string { return r.Pattern }

// RouteOf is a LimitConfig.Route for a limit that stands before mux: it looks up the pattern that mux will choose.
func RouteOf(mux *http.ServeMux) func(*http.Request) string {
	return func(r *http.Request) string {
		_, pattern := mux.Handler(r)
		return pattern
	}
}

// patternOrLog returns the default Route for a configuration that uses routes. It logs the first request without a
// Pattern as an error, because all such requests count as one route, and none matches a Match by route.
func patternOrLog(what string) func(*http.Request) string {
	var once sync.Once
	return func(r *http.Request) string {
		if r.Pattern == "" {
			once.Do(func() {
				slog.ErrorContext(r.Context(), "weirhttp: "+what+" uses routes, but http.Request.Pattern is empty, so all routes count as one: "+
					"put it behind the http.ServeMux or set Route (see Routes in the documentation of package weirhttp)")
			})
		}
		return r.Pattern
	}
}

// usesRoutes reports whether any policy or match uses routes.
func (c LimitConfig) usesRoutes() bool {
	asks := namesRoutes(c.Exempt)
	for _, p := range c.Policies {
		asks = asks || p.By&ByRoute != 0 || namesRoutes(p.Only) || namesRoutes(p.Except)
	}
	return asks
}

func namesRoutes(matches []Match) bool {
	for _, m := range matches {
		if len(m.Routes) > 0 {
			return true
		}
	}
	return false
}
