// Package weirhttp guards the HTTP calls that a program makes, and those that it serves.
//
// On the way out, a [Transport] stops calling hosts that fail and throttles what is sent:
//
//	var web = &http.Client{Transport: weirhttp.NewTransport(weirhttp.PerHost("web", weir.Config{}), weirhttp.TransportConfig{})}
//
// Each host has a [weir.Gate] of its own:
//
//	request ──► which gate? ──► gate ──► base ──► headers ──────────► body
//	             PerHost, Per,   │        │        judged: 5xx, 429    watched: one that
//	             One, Pick       │        │        and no answer fail  fails is counted
//	                             ▼        ▼
//	                         refused:    no answer: a failure, unless the
//	                         no call     caller cancelled
//
// A request that is refused fails with a [*RefusedError], which names the host and the wait,
// or is answered by TransportConfig.Fallback. A server that says when to come back is obeyed.
//
// On the way in, a [Limit] refuses who calls too often, by address, client and route and over
// several periods at once, and [LimitBy] asks a limiter of yours, such as one of a fleet; a [Shed] refuses what is more than the server can do at the same
// time; and [Breaker] answers in the place of a handler that fails. They are middleware:
//
//	server := &http.Server{Addr: ":8080", Handler: limit.Handler(mux), ReadHeaderTimeout: 5 * time.Second}
//
// # Routes
//
// The route of a request is its http.Request.Pattern, which an http.ServeMux sets before it calls the handler. Before a
// ServeMux, use [RouteOf]. Other routers need a few lines.
//
// chi sets the Pattern too, but only after the middleware that the top router uses. There, ask the router:
//
//	Route: func(r *http.Request) string { return router.Find(chi.NewRouteContext(), r.Method, r.URL.Path) }
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
