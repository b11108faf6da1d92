// Package notify sends alerts: to Slack, Microsoft Teams, PagerDuty and Alertmanager, to any
// receiver of Alertmanager's webhooks, to other HTTP APIs by a template, and by e-mail.
//
//	slack := notify.NewSlack(notify.Config{URL: notify.Secret(os.Getenv("SLACK_WEBHOOK_URL"))})
//	monitor := alert.NewMonitor(alert.Config{Notify: []alert.Notifier{slack}}, rules...)
//	go monitor.Run(ctx)
//
// A notifier has the metrics and the view of its breaker, so it can be exported, watched and
// changed like other breakers: it is a [github.com/weir-go/weir/stat.HistogramSource] and a
// [github.com/weir-go/weir/stat/view.Viewer].
//
//	collector := prom.NewCollector(monitor, slack.(stat.Source))
//
// # Config
//
//	Config     Default                Change it
//	Name       the kind               if a program has two notifiers of a kind
//	URL        required               to the address of your receiver
//	Header     none                   if the server asks for authorization
//	Repeat     4h                     to be reminded more often; Off for never
//	Transport  a copy of              if the server is behind a proxy, or has a certificate of
//	           http.DefaultTransport  your own
//	Breaker    that of package        to try a server that is down more or less often
//	           breaker
//
// [NewMail] has a Config of its own, [MailConfig].
//
// # Flow
//
// A notifier makes one attempt per call and returns how it ended. The monitor keeps undelivered
// alerts and repeats attempts with growing pauses, so there is nothing else to start:
//
//	monitor ──► breaker ──► server ──► 2xx: delivered
//	   ▲           │           ├─────► 408, 425, 429, 5xx, or no answer: repeated soon
//	   │           │ open      └─────► any other status: refused
//	   └───────────┘
//
// The status decides what the monitor does next:
//
//   - After a status 408, 425, 429 or 5xx the attempt is repeated soon, but not before the time in
//     a Retry-After header.
//   - Any other status except 2xx is a refusal. It may be temporary, as when a token has expired. A
//     refused alert is tried again every 5 minutes, or every Repeat if that is less, and delays no
//     other alert.
//
// # Guarantees
//
//   - Redirects are not followed.
//   - A breaker per notifier stops the attempts while its server is down.
//   - All notifiers are safe for concurrent use.
//   - The errors of Notify are of type [*alert.DeliveryError], unless its context was canceled.
//   - URLs and headers often hold keys. They appear in no error, log line or printed form of this
//     package, and neither do the answers of servers. In a Config they are a [Secret].
//
// docs/alerts.md lists the receivers, with the limits that are kept for each.
package notify
