// Package admin serves an HTTP API that lists gates, breakers, limiters, throttles, alert monitors and other
// objects, and acts on them while the program runs:
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
//	POST limits?name=hosts                   {"rate": "50/s", "for": "1h"}
//	POST silence?name=web-1                  {"match": ["alertname=\"payments fail\""], "for": "1h"}
//	POST unsilence?name=web-1                {"silence": "deploy"}
//	POST test?name=web-1                     {"notifier": "slack"}
//
// The parameter key names a member of a group, and kind distinguishes objects with the same name. Without a
// key, an action is done to the whole group: to all keys, to those that are added later, and to calls
// without room for their key. Limits are changed for a group as a whole only. When the override of a
// group is released, its keys return to the overrides that they had of their own.
//
// # Objects
//
// A gate, a breaker, a limiter, a throttle and a bound on calls in flight are objects, and so is a group of
// them. Give a throttle that is a part of a gate as a source of its own. The objects of a weirhttp.Limit
// are its policies, by their names. Other middleware acts through a gate or a bound, which is the object.
// The name of an alert.Monitor is its Instance. Other sources, such as those of package fleet, are
// objects if they have a method Name and at least one of these:
//
//	Hold(d time.Duration)
//	Reset(ctx context.Context, key string) error
//	Busiest(n int) []limiter.BusyKey
//	Breakers() iter.Seq2[string, *breaker.Breaker]
//
// The breakers of the last one are the members of the object. Force of the whole object does not reach
// breakers that are added later, and release ends the overrides of all of them. If the breaker of a
// fleet.Link is forced open, the limiters decide by their OnOutage, for example while Redis is replaced.
//
// A source with a method Sources() []stat.Source, such as a weirconfig.Set, stands for the sources that it
// returns at each request. So objects that a new configuration adds are there at once.
//
// An action that an object does not have gets status 409, with the actions that it has.
//
// # Actions that end by themselves
//
// An action with "for" ends after that time, and what it has changed returns to the state before. A
// second action replaces the first, and what returns is the state before both. An action without
// "for" stays. If the program itself has changed the object in the meantime, the end of the action
// changes nothing. It cannot tell that the program has set the same values: to keep the values of an
// action, for example after they were written to a file, do it again without "for".
//
// An override and a change of limits are separate. A hold always ends automatically, and cannot be
// shortened. No goroutine waits for the end, only a timer. After a restart of the program nothing of an
// action is left.
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
// The program is ready while breakers are open, unless HealthConfig.NotReady names them. Otherwise all its
// instances would leave service together as soon as a dependency fails. What they can do without the
// dependency would be lost too: see https://github.com/resilience4j/resilience4j/issues/607. Do not restart
// a program for an open breaker either: use neither path for a liveness probe.
//
// # Who may do what
//
// Config.Authorize decides, and New fails without it. The origin of each request is checked as by
// [http.CrossOriginProtection], and a body must have the Content-Type application/json, so no other website
// can act through the browser of a user. Bodies are at most 16 kB and must arrive within 10 seconds. A user
// has 10 requests per second, and 32 are served at once.
//
// Each action is logged with its user as an event weir.admin.action, is one of the last 20 in the history
// of the object, and is the reason of the [breaker.Change] that it causes. Refused callers are not told
// the user or the reason.
package admin
