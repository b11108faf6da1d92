// Package dashboard shows the figures of weir on a live web page: what is open,
// what fails, what is refused, since when.
//
// One handler takes all sources (gates, breakers, limiters, alert monitors, your own
// implementations of [stat.Source]). Mount it behind whatever guards your debug pages:
//
//	page, err := dashboard.New(dashboard.Config{}, payments, users, monitor)
//	if err != nil {
//		return err
//	}
//	http.Handle("/debug/weir/", http.StripPrefix("/debug/weir", page))
//
// The page has a table of all that calls pass through, the alerts, the recent
// changes of state, and a view of each source with charts over the last minutes.
// It only reads. It is made for browsers with and without a mouse, small and
// large, and loads nothing from anywhere else.
//
// # What it costs
//
// The page costs nothing while it is not open. The sources are read on the goroutines of the
// requests, once per [Config].Interval for all clients, and not at all when the last tab is
// closed or hidden. So the charts begin when the page is opened.
// The package starts no goroutine. A source and sample take some 64 bytes until
// they are older than [Config].History.
//
// # What is served
//
//	{$}            the page
//	assets/…       its styles and scripts, under a name that changes with their content
//	snapshot.json  all that the page shows
//	source.json    one source (?id=…) with its figures and its past
//	stream         snapshots and what has changed since, as server-sent events
//
// All but the stream have an ETag. The JSON is for the page and for scripts on
// the spot: fields may be added, and a monitoring system is better served by the
// packages prom and otelmetric. A page that cannot have a stream, because 32 are open
// already or because a proxy holds events back, asks for snapshots
// instead.
//
// # What it can know
//
// The figures are lifetime totals, so what happened between two samples is known
// by its sums. A breaker that opened and closed between two samples is listed with
// the states it went through. The time in a state is exact where it follows from
// the totals, and otherwise shown as a bound. The failure rate is that of the
// breaker's own window. Quantiles are shown of sources that have the methods
//
//	Name() string
//	Latency() window.Latency
//
// as breakers and gates do; they have data where the breaker keeps latencies.
package dashboard
