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
// The page has a table of breakers, limiters and gates, the alerts, the recent changes of state,
// and a view of each source with charts of the last minutes. It is read-only, works on small and
// large screens, by mouse, touch or keyboard, and loads nothing from other servers.
//
// # Costs
//
// The page costs nothing while it is not open, and the package starts no goroutine. While it is
// open, the requests read the sources, once per [Config].Interval for all clients together. They
// stop when the last tab is closed or hidden. The charts therefore begin when the page is opened.
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
// such as a breaker or a gate, says why it refuses calls: the reason on the first line, and one of its
// last failures on each further line. Messages of errors are shown: see breaker.Config.DescribeFailure.
// Members of groups are not asked.
package dashboard
