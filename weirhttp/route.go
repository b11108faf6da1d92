package weirhttp

import (
	"log/slog"
	"net/http"
	"sync"
)

// pattern is the route by default.
func pattern(r *http.Request) string { return r.Pattern }

// RouteOf is a LimitConfig.Route for a limit that stands before mux: it looks up the pattern that mux will choose.
func RouteOf(mux *http.ServeMux) func(*http.Request) string {
	return func(r *http.Request) string {
		_, pattern := mux.Handler(r)
		return pattern
	}
}

// loudPattern returns the route by default, for what tells requests apart by it. The first request without a route
// is logged as an error: nobody has set http.Request.Pattern, so all routes count as one, and none is exempt.
func loudPattern(what string) func(*http.Request) string {
	var once sync.Once
	return func(r *http.Request) string {
		if r.Pattern == "" {
			once.Do(func() {
				slog.ErrorContext(r.Context(), "weirhttp: "+what+" tells requests apart by route, but http.Request.Pattern is empty, so all "+
					"routes are one. Put it behind the http.ServeMux, or set Route; other routers need a line, see the package's documentation")
			})
		}
		return r.Pattern
	}
}

// asksForRoutes reports whether any part of the configuration tells requests apart by route.
func (c LimitConfig) asksForRoutes() bool {
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
