// Package weirhttp limits and guards the HTTP requests that a program sends and serves.
//
// A [Transport] sends requests through gates, which limit them and stop calling hosts that fail.
// Here each host has its own gate:
//
//	hosts := weir.NewGroup[string]("hosts", weir.GroupConfig{})
//	client := &http.Client{Transport: weirhttp.NewTransport(weirhttp.Per(hosts, weirhttp.ByHost), weirhttp.TransportConfig{})}
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
// # Config
//
// The Config of a client:
//
//	TransportConfig    Default                Change it
//	Base               http.DefaultTransport  to set timeouts, a proxy or certificates
//	Classify           DefaultClassify        if other responses or errors are failures
//	Fallback           none                   to answer refused requests, such as from a cache
//	OnRefusal          none                   to log refusals, or to record them on a span
//	MaxRetryAfter      1m                     if servers may ask for longer waits; Off ignores them
//	ObeyRemaining      false                  if the service says how many requests are left
//	CountBodyFailures  false                  if bodies fail although the headers arrive
//
// [LimitConfig], [ShedConfig] and [GuardConfig] are those of the middleware.
//
// # Flow
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
// A gate function returns the gate of a request, or nil for a request without a gate. [Per] and
// [ForAll] return gate functions, and any func(*http.Request) *weir.Gate is one. A gate function is
// called for each request, from any number of goroutines, and must not block. For metrics and alert
// rules use the group or gate behind it.
//
// A key function returns the key of a request. Requests with the same key share a gate or a quota.
// [ByIP], [ByHeader], [ByRoute], [ByHost] and [ByNothing] are key functions, [Combine] joins
// several, and any func(*http.Request) string is one. Key functions are arguments of [Per], and the
// By of a [Policy].
//
// docs/recipes.md shows the middleware in routers, and what ByRoute needs with chi, echo and gin.
//
// # Guarantees
//
//   - A refused request is not sent. Its error is a [*RefusedError], which has the host and the
//     wait. With TransportConfig.Fallback it gets another response.
//   - If a server asks clients to wait, its gate refuses requests for that time.
//   - A call that its caller cancelled is no failure.
//   - The outcome of a request is known from the headers of its response. With CountBodyFailures, a
//     body that fails is one more failed call.
package weirhttp
