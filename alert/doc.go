// Package alert evaluates alert rules over breakers, limiters and windows inside the process,
// without a server, and notifies people when a rule fires.
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
// A [Rule] consists of a [Value], a [Condition] and durations. [Each] applies one rule to every
// member of a group. Package alert/notify has notifiers for chats, pagers, webhooks and
// Alertmanager. A [Silence] holds notifications back.
//
// # Config
//
//	Config     Default                Change it
//	Interval   5s                     to notice faster, or to evaluate many rules less often
//	Budget     1s                     if a Value of your own takes longer
//	Notify     none                   always: these get the alerts
//	Timeout    10s                    if a notifier needs longer
//	Instance   the host name and      to a name that the process keeps when it restarts
//	           the process ID
//	StateFile  none                   if alerts should outlive the process
//	Logger     slog.Default()         to log failures of rules and notifiers elsewhere
//
// # States
//
// The states of an alert are those of Prometheus:
//
//	            When holds              for as long as For
//	inactive ───────────────► pending ─────────────────────► firing
//	   ▲  ▲                      │                             │
//	   │  └──────────────────────┘                             │
//	   │    When does not hold                                 │
//	   └───────────────────────────────────────────────────────┘
//	     When does not hold, or Resolve holds, for KeepFiring
//
// Unlike Prometheus, a rule may have a separate threshold for resolving, a minimum number of calls
// and of bad calls, and a choice of what missing data means. By default missing data repeats the
// last verdict.
//
// # Guarantees
//
//   - Each value reads the lifetime totals of a breaker, a gate or a window at every evaluation and
//     keeps a moving window of its own. A call therefore costs the same with and without rules, and
//     a rule over days costs as little as a rule over seconds.
//   - Calls that an open breaker refuses count as failed, so that the breaker does not silence the
//     alert about the outage that opened it.
//   - A monitor delivers the latest state of each alert to each [Notifier] at least once, and
//     repeats failed attempts until one succeeds. If the state changes before it is delivered, only
//     the new state is delivered. An alert that the receiver refuses is tried again after minutes
//     and delays no other alert.
//   - Alerts live in the process. If the process ends while an alert fires, no notifier is told
//     that it resolved, unless [Config].StateFile is set and the process starts again. Alertmanager
//     is the exception: it resolves alerts that are no longer repeated. Processes with the same
//     rules raise separate alerts, told apart by the label "instance": see Config.Instance.
//   - A rule reads its sources once per interval. A [Gauge] misses anything that is shorter than an
//     interval. Values that are computed from calls miss nothing. A span is exact to a sixtieth of
//     its length or to one interval, whichever is longer. Calls made before the first evaluation
//     are not counted.
//   - A package variable can be used in bubbles of testing/synctest, in which the clock begins
//     anew. If the clock of a monitor is another one than before, its values start again as new.
//     Alerts go on, but Rule.For, Rule.KeepFiring and the time until a repetition begin again. A
//     [Silence] has dates, which stay.
//
// docs/alerts.md says more about receivers, silences and the state file.
package alert
