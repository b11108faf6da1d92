// Package weirhttp limits and guards the HTTP requests that a program sends and serves.
//
// A [Transport] sends requests through gates, which limit them and stop calling hosts that fail.
// Here each host has its own gate:
//
//	hosts := weir.NewGroup[string]("hosts", weir.GroupConfig{})
//	client := &http.Client{Transport: weirhttp.NewTransport(weirhttp.Per(hosts, weirhttp.ByHost), weirhttp.TransportConfig{})}
//
// The path of a request:
//
//	request ──► gate ──────► base ─────────► response headers ──► response body
//	             │            │               5xx and 429 are      has no outcome, except
//	             ▼            ▼               failures             with CountBodyFailures
//	         refused:      no response:
//	         not sent      a failure, unless
//	                       the caller cancelled
//
// The error of a refused request is a [*RefusedError], which has the host and the wait. With
// TransportConfig.Fallback a refused request gets another response. If a server asks clients to
// wait, its gate refuses requests for that time.
//
// Servers have three kinds of middleware:
//
//   - [Limit] refuses clients that send too many requests. It limits by address, header or route,
//     over several periods at once, in this process or with a limit that several servers share.
//   - [Shed] refuses requests if too many are being served.
//   - [Guard] sends requests to a handler through gates, and refuses them while the handler fails.
//
// A limit by API key:
//
//	limit := weirhttp.NewLimit(weirhttp.LimitConfig{Policies: []weirhttp.Policy{
//		{Name: "minute", Limit: 100, Window: time.Minute, By: weirhttp.ByHeader("X-Api-Key")},
//	}})
//	server := &http.Server{Addr: ":8080", Handler: limit.Handler(mux), ReadHeaderTimeout: 5 * time.Second}
//
// # Gate functions
//
// A gate function returns the gate of a request, or nil for a request without a gate. [Per] and
// [ForAll] return gate functions, and any func(*http.Request) *weir.Gate is one. A gate function is
// called for each request, from any number of goroutines, and must not block. For metrics and alert
// rules use the group or gate behind it.
//
// # Key functions
//
// A key function returns the key of a request. Requests with the same key share a gate or a quota.
// [ByIP], [ByHeader], [ByRoute], [ByHost] and [ByNothing] are key functions, [Combine] joins
// several, and any func(*http.Request) string is one. Key functions are arguments of [Per], and the
// By of a [Policy].
//
// # Routes
//
// ByRoute(mux) asks a ServeMux for the route of a request. Other routers need a few lines. chi sets
// http.Request.Pattern, which ByRoute(nil) returns, but only after the middleware of its top router
// has run. There, ask the router:
//
//	By: func(r *http.Request) string { return router.Find(chi.NewRouteContext(), r.Method, r.URL.Path) }
//
// With echo, set the Pattern before the limit:
//
//	e.Use(func(next echo.HandlerFunc) echo.HandlerFunc {
//		return func(c echo.Context) error {
//			c.Request().Pattern = c.Path()
//			return next(c)
//		}
//	}, echo.WrapMiddleware(limit.Handler))
//
// With gin, set the Pattern, and abort a request that was refused:
//
//	router.Use(func(c *gin.Context) {
//		c.Request.Pattern = c.FullPath()
//		passed := false
//		limit.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
//			passed = true
//			c.Next()
//		})).ServeHTTP(c.Writer, c.Request)
//		if !passed {
//			c.Abort()
//		}
//	})
package weirhttp
