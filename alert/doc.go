// Package alert judges the calls that the rest of weir counts, inside the process and without a
// server, and tells notifiers when something is wrong.
//
//	monitor := alert.NewMonitor(
//		alert.Config{Notify: []alert.Notifier{alert.Log(slog.Default())}},
//		alert.Rule{
//			Name:     "payments fail",
//			Value:    alert.FailureRate(payments, 5*time.Minute),
//			When:     alert.Above(0.05),
//			MinCalls: 20,
//			For:      30 * time.Second,
//		})
//	go monitor.Run(ctx)
//
// A [Rule] consists of a [Value], a [Condition] and some times. A value looks at a breaker, a gate,
// a window or anything else that has Totals, through a moving window of its own that is fed at each
// evaluation: no call pays for a rule, and rules over days cost as little as rules over seconds.
// [Each] watches every member of a group by one rule. The states are those of Prometheus:
//
//	            When holds              for as long as For
//	inactive ───────────────► pending ─────────────────────► firing
//	   ▲  ▲                      │                             │
//	   │  └──────────────────────┘                             │
//	   │     one evaluation without                            │
//	   └───────────────────────────────────────────────────────┘
//	          When no longer holds, or Resolve does, for KeepFiring
//
// Beyond Prometheus, a rule may have a threshold of its own for resolving, minimum numbers of calls
// and of bad calls, and a choice of what missing data means. By default missing data repeats the last
// verdict. Calls that an open breaker refuses count as failed, so that the breaker does not silence
// the alert about the outage that opened it.
//
// # Delivery
//
// A [Notifier] is told the latest state of each alert at least once, and attempts are repeated until
// one succeeds. A state that changes meanwhile takes the place of the older one. An alert that the
// receiver refuses is tried again after minutes and holds up no other alert. Package alert/notify has
// notifiers for Slack, webhooks and Alertmanager.
//
// An alert lives in the process. If the process ends while the alert fires, no notifier is told that
// it resolved; only Alertmanager resolves what is not repeated. Processes with the same rules raise
// alerts of their own, told apart by the label "instance": see Config.Instance.
//
// # Limits
//
// A rule looks at its sources once per interval. A [Gauge] may miss what is shorter; values over calls
// miss nothing. Spans are exact to a sixtieth of the span or to one interval, whichever is longer.
// Calls from before the first evaluation are not seen.
package alert
