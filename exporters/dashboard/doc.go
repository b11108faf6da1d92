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
// # Config
//
//	Config    Default    Change it
//	Title     "weir"     to the name of your program
//	Interval  1s         if reading all sources each second costs too much
//	History   5m         for longer or shorter charts
//	Hosts     all names  if a proxy on the same machine passes on the name, or to allow fewer
//	Admin     none       to have buttons
//
// # Flow
//
//	browser ──► snapshot.json, then stream ──► one sample of all sources per Interval
//	        ──► source.json                ──► one source with its charts, its last failures,
//	                                           and its busiest refused keys
//
// # Guarantees
//
//   - The page costs nothing while it is not open, and the package starts no goroutine. While it is
//     open, the requests read the sources, once per [Config].Interval for all clients together.
//     They stop when the last tab is closed or hidden.
//   - The charts therefore begin when the page is opened. Incidents may have begun before, because
//     each breaker remembers when it opened first, and its last eight incidents. It stores this
//     only when it opens or closes, so calls do not become slower.
//   - Each sample of a source takes about 64 bytes and is kept for [Config].History.
//
// docs/dashboard.md lists the endpoints, says what needs attention, and which methods of a source
// the page shows.
package dashboard
