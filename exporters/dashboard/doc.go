// Package dashboard serves a live web page of weir's metrics: the states of breakers, rates and
// failure rates of calls, refusals, latencies, alerts and deliveries.
//
// One handler shows any number of sources: gates, breakers, limiters, alert monitors and your own
// implementations of [stat.Source]. Mount it where your debug pages are, behind the same access
// control:
//
//	page, err := dashboard.New(dashboard.Config{}, payments, users, monitor)
//	if err != nil {
//		return err
//	}
//	http.Handle("/debug/weir/", http.StripPrefix("/debug/weir", page))
//
// The page begins with the sources that need attention, and says of each what is broken, since
// when, why, what happens next, and what is affected. Below are a table of breakers, limiters and
// gates, the alerts with their thresholds, the incidents that are over, and the recent changes of
// state. A view of each source has charts of the last minutes and the configuration in effect. The
// page is read-only, unless [Config.Admin] is set. It works on small and large screens, by mouse,
// touch or keyboard, and loads nothing from other servers.
//
// # Costs
//
// The page costs nothing while it is not open, and the package starts no goroutine. While it is
// open, the requests read the sources, once per [Config].Interval for all clients together. They
// stop when the last tab is closed or hidden. The charts therefore begin when the page is opened.
// Incidents may have begun before, because each breaker remembers when it opened first, and its
// last eight incidents. It stores this only when it opens or closes, so calls do not become slower.
// Each sample of a source takes about 64 bytes and is kept for [Config].History.
//
// # Endpoints
//
//	{$}            the page
//	assets/…       its styles and scripts, under a path that changes with their content
//	snapshot.json  everything the page shows except views of single sources
//	source.json    one source (?id=…) with its metrics and its history
//	stream         snapshots and changes, as server-sent events
//
// All of them except stream have an ETag. The JSON is for the page and for ad-hoc scripts: fields
// may be added. For a monitoring system, use package prom or otelmetric. A page that cannot have a
// stream polls snapshots, for example because 32 streams are open or a proxy buffers events.
//
// # Accuracy
//
// The page reads lifetime totals, so it knows only sums of what happened between two samples. A
// breaker that opened and closed in between is listed with the states it passed through. The time
// in a state is exact if it follows from the totals, and is shown as an upper bound otherwise. The
// failure rate is that of the breaker's own window. Latencies are shown for sources that have the
// methods
//
//	Name() string
//	Latency() window.Latency
//
// such as breakers and gates, if they are configured to keep latencies. A source with the method
//
//	Explain() string
//
// such as a breaker or a gate, says why it refuses calls: the reason on the first line, and one of
// its last failures on each further line. Messages of errors are shown: see
// breaker.Config.DescribeFailure. Members of a group have latencies and reasons if they have series
// of their own.
//
// An incident lasts from the first opening of a breaker until it has closed: probes, and openings
// because of them, are part of it. A source needs attention in these cases:
//
//   - Its breaker is not closed.
//   - A limit refused or delayed calls in the last 10 s.
//   - A group or a limiter had no room for the key of a call in the last 10 s.
//   - Its service has asked not to be called.
//   - Its window has at least 10 calls, and half of the failures or slow calls that would open it.
//
// Beside sources, these need attention:
//
//   - A rule that fires, unless all its alerts are silenced.
//   - A rule whose latest evaluation failed, and a rule that was not evaluated for three intervals,
//     or 15 s if that is longer. A value without data is no trouble: Rule.NoData says what it
//     means.
//   - A notifier whose latest attempt failed, or that gave up an alert in the last 15 minutes.
//
// The page knows of limits and of closed breakers only from its own samples, so for trouble that
// was there when the page was opened, it says "or earlier".
//
// A source with the method
//
//	Notice() string
//
// such as a weirconfig.Set whose file was refused, has a text at the top of the page while that is
// not empty. At most 8 texts of 2,000 bytes are shown.
//
// A source with the method
//
//	Busiest(n int) []limiter.BusyKey
//
// such as a limiter.Group with a name, a weir.Group, a weirhttp.Limit or a fleet.Limiter, shows the
// keys that it refused most often in the last minutes, in the view of the limiter. Keys are hashed
// unless the user shows them.
package dashboard
