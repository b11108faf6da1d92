// Package weirhttp guards the HTTP requests that a program sends and those that it serves.
//
// A [Transport] stops calling hosts that fail, and limits what is sent:
//
//	hosts := weir.NewGroup[string]("hosts", weir.GroupConfig{})
//	client := &http.Client{Transport: weirhttp.NewTransport(weirhttp.Per(hosts, weirhttp.ByHost), weirhttp.TransportConfig{})}
//
// Here each host has a [weir.Gate] of its own:
//
//	request ──► gate ──────► base ─────────► response headers ──► response body
//	             │            │               5xx and 429 are      not judged, unless
//	             ▼            ▼               failures             CountBodyFailures
//	         refused:      no response:
//	         not sent      a failure, unless
//	                       the caller cancelled
//
// A refused request returns a [*RefusedError], which names the host and the wait, or is answered by
// TransportConfig.Fallback. A wait that a server asks for is obeyed.
//
// Servers have three kinds of middleware. A [Limit] refuses clients that send too many requests: by
// address, header or route, over several periods at once, in this process or with a limit that a fleet
// of servers shares. A [Shed] refuses requests beyond what the server can do at the same time. A
// [Guard] sends requests to a handler through gates, and answers in its place while it fails.
//
//	limit := weirhttp.NewLimit(weirhttp.LimitConfig{Policies: []weirhttp.Policy{
//		{Name: "minute", Limit: 100, Window: time.Minute, By: weirhttp.ByHeader("X-Api-Key")},
//	}})
//	server := &http.Server{Addr: ":8080", Handler: limit.Handler(mux), ReadHeaderTimeout: 5 * time.Second}
//
// # Keys
//
// Key functions say which requests belong together. [ByIP], [ByHeader], [ByRoute], [ByHost] and
// [ByNothing] are key functions, [Combine] joins several, and any func(*http.Request) string is one.
// They are the By of a [Policy] and the key of [Per].
//
// # Routes
//
// ByRoute(mux) asks a ServeMux for the route. Other routers need a few lines. chi sets
// http.Request.Pattern, which ByRoute(nil) returns, but only after the middleware of its top router has
// run. There, ask the router:
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
