// Package admin serves an HTTP API that lists gates, breakers, limiters, throttles, alert monitors
// and other objects, and acts on them while the program runs:
//
//	ops, err := admin.New(admin.Config{Authorize: authorize}, payments, hosts, downloads, monitor)
//	if err != nil {
//		return err
//	}
//	mux.Handle("/admin/weir/", http.StripPrefix("/admin/weir", ops))
//
// Give it the sources that your exporters have. Requests and answers are JSON:
//
//	GET  objects                             all objects, with the actions that each has
//	GET  object?name=payments                one object and its history; alerts and silences of a monitor
//	GET  members?name=hosts&state=open       members of a group
//	GET  openapi.json                        the OpenAPI description, which is also a file of the package
//	POST force?name=payments                 {"state": "open", "for": "10m", "reason": "ticket 17"}
//	POST release, drain or reset?name=…      {}
//	POST hold?name=payments                  {"for": "30s"}
//	POST limits?name=hosts&all=true          {"rate": "50/s", "for": "1h"}
//	POST silence?name=web-1                  {"match": ["alertname=\"payments fail\""], "for": "1h"}
//	POST unsilence?name=web-1                {"silence": "deploy"}
//	POST test?name=web-1                     {"notifier": "slack"}
//
// The parameter kind distinguishes objects with the same name. An action on a group, or on another
// object with keys, needs either key, which names a member, or all=true. That means the whole
// group: all keys, keys that are added later, and calls for whose key the group has no room. Limits
// are changed for a group as a whole only. When the override of a group is released, each key
// returns to its own override, if it has one. A query that is not valid, or has an empty parameter,
// is refused.
//
// # Config
//
//	Config          Default         Change it
//	Authorize       required        to the check of your credentials
//	Logger          slog.Default()  to log actions elsewhere
//	TrustedOrigins  none            if pages of another origin may send actions
//
// # Flow
//
//	request ──► origin ──► Authorize ──► limits of the user ──► object ──► log, history
//	              │ 403        │ 401, 403       │ 429             │ 409: not an action of it
//
// A gate, a breaker, a limiter, a throttle, a bound on calls in flight, a policy of a
// weirhttp.Limit and an alert.Monitor are objects, and so is a group of them. docs/admin.md says
// which other sources are. An action with "for" ends after that time, and the override or the
// limits that it has changed return to their values before.
//
// NewHealth returns a second handler, for orchestrators and load balancers:
//
//	health, err := admin.NewHealth(admin.HealthConfig{}, payments, hosts, downloads)
//	…
//	mux.Handle("/health/", http.StripPrefix("/health", health))
//	…
//	err = health.Drain(ctx, server.Shutdown) // when the program is told to stop
//
// The program is ready while breakers are open, unless HealthConfig.NotReady names them: see
// docs/admin.md.
//
// # Guarantees
//
//   - Config.Authorize decides who may do what, and New fails without it.
//   - The origin of each request is checked as by [http.CrossOriginProtection], and a body must
//     have the Content-Type application/json, so no other website can act through the browser of a
//     user. Bodies are at most 16 kB and must arrive within 10 seconds.
//   - A user has 10 requests per second, and 32 are served at once.
//   - Each action is logged with its user as an event weir.admin.action. The history of an object
//     has its last 20 actions, and the 1,000 objects of the latest actions have a history.
//   - If an action causes a [breaker.Change], the Reason of the change names the user and the
//     reason of the action. Refused callers are not told the user or the reason.
//   - The end of an action undoes only what the action itself has set. A value that the program or
//     another user has set since then stays, even if it is the same value.
package admin
