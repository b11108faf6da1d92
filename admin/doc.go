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
// # Objects
//
// A gate, a breaker, a limiter, a throttle and a bound on calls in flight are objects, and so is a
// group of them. Give a throttle that is a part of a gate as a source of its own. The objects of a
// weirhttp.Limit are its policies, by their names. Other middleware uses a gate or a bound, and
// this gate or bound is the object. The name of an alert.Monitor is its Instance. A
// guard of your own is an object if it has a view: see [github.com/weir-go/weir/stat/view]. Other
// sources, such as those of package fleet, are objects if they have a method Name and at least one
// of these:
//
//	Hold(d time.Duration)
//	Reset(ctx context.Context, key string) error
//	Busiest(n int) []limiter.BusyKey
//	Breakers() iter.Seq2[string, *breaker.Breaker]
//
// The breakers that Breakers yields are the members of the object. The action force on the whole
// object does not reach breakers that are added later, and release ends the overrides of all its
// breakers. If the breaker of a fleet.Link is forced open, the limiters decide by their OnOutage,
// for example while Redis is replaced.
//
// A source with a method Sources() []stat.Source, such as a weirconfig.Set, stands for the sources
// that it returns at each request. So the next request already finds the objects that a new
// configuration adds.
//
// An action that an object does not have gets status 409, with the actions that it has.
//
// # Actions that end by themselves
//
// An action with "for" ends after that time, and the override or the limits that it has changed
// return to their values before. A second action replaces the first, and when it ends, the values
// before both actions return. An action without "for" stays. The end of an action undoes only what
// the action itself has set. A value that the program or another user has set since then stays,
// even if it is the same value. To keep the values of an action, do it again without "for", or set
// them in the program or its configuration.
//
// An override, a rate with its burst, and a bound on calls in flight are separate. A hold always
// ends automatically, and a shorter hold does not shorten it. The reset of a group of limiters, of
// a policy or of one of their keys ends its hold. Until its end an action has a timer, but no
// goroutine. A restart of the program ends all actions.
//
// # Health and shutdown
//
// NewHealth returns a second handler, for orchestrators and load balancers:
//
//	health, err := admin.NewHealth(admin.HealthConfig{}, payments, hosts, downloads)
//	…
//	mux.Handle("/health/", http.StripPrefix("/health", health))
//	…
//	err = health.Drain(ctx, server.Shutdown) // when the program is told to stop
//
// The program is ready while breakers are open, unless HealthConfig.NotReady names them. Otherwise
// all its instances would leave service together as soon as a dependency fails. What they can do
// without the dependency would be lost too: see
// https://github.com/resilience4j/resilience4j/issues/607. Do not restart a program for an open
// breaker either: use neither path for a liveness probe.
//
// # Who may do what
//
// Config.Authorize decides, and New fails without it. The origin of each request is checked as by
// [http.CrossOriginProtection], and a body must have the Content-Type application/json, so no other
// website can act through the browser of a user. Bodies are at most 16 kB and must arrive within 10
// seconds. A user has 10 requests per second, and 32 are served at once.
//
// Each action is logged with its user as an event weir.admin.action. The history of an object has
// its last 20 actions, and the 1,000 objects of the latest actions have a history. If an action
// causes a [breaker.Change], the Reason of the change names the user and the reason of the action.
// Refused callers are not told the user or the reason.
package admin
