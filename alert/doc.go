// Package alert judges the calls that the rest of weir counts, and tells somebody
// when they go wrong, inside the process and without any server.
//
//	monitor := alert.NewMonitor(
//		alert.Config{Notify: []alert.Notifier{alert.Log(slog.Default())}},
//		alert.Rule{
//			Name:  "payments errors",
//			Value: alert.FailureRate(payments, 5*time.Minute),
//			When:  alert.Above(0.05), MinCalls: 20, For: 30 * time.Second,
//		})
//	go monitor.Run(ctx)
//
// A [Rule] is a [Value], a [Condition] and some times. A value looks at anything
// that has Totals, through a moving window of its own that is fed at each evaluation:
// no call pays for a rule, and rules over days cost as little as rules over seconds.
// The states are Prometheus's:
//
//	            When holds              for as long as For
//	inactive ───────────────► pending ─────────────────────► firing
//	   ▲  ▲                      │                             │
//	   │  └──────────────────────┘                             │
//	   │     one evaluation without                            │
//	   └───────────────────────────────────────────────────────┘
//	          When no longer holds, or Resolve does, for KeepFiring
//
// What goes beyond Prometheus: a threshold of its own for resolving, minimum numbers
// of calls and of bad calls, and a say in what missing data means. Missing data
// keeps the last verdict unless told otherwise, and calls that an open breaker
// refuses count as failed, so that the breaker does not silence the alert about the
// outage that opened it.
//
// # Delivery
//
// A [Notifier] is told the latest state of each alert, at least once, and tried again
// until it has been; a state that changes meanwhile takes the place of the older one.
// A refused alert is tried again after minutes, and holds up no other alert. Package
// alert/notify has notifiers that speak to servers. An alert lives in the process:
// if that ends while the alert fires, nobody is told that it resolved, save through
// Alertmanager, which resolves what is not repeated. Processes with the same rules raise
// alerts of their own, told apart by the label "instance": see Config.Instance.
//
// # Limits
//
// A rule sees its sources once an interval: what is shorter may be missed by gauges,
// never by figures over calls. Spans are as exact as a sixtieth of them, or an
// interval, whichever is longer. Calls from before the first evaluation are not seen.
package alert
