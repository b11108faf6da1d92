// Package notify passes alerts on over HTTP: to Slack, to Alertmanager, and to anything that takes
// Alertmanager's webhooks.
//
//	slack := notify.NewSlack(notify.Config{URL: os.Getenv("SLACK_WEBHOOK_URL")})
//	monitor := alert.NewMonitor(alert.Config{Notify: []alert.Notifier{slack}}, rules...)
//	go monitor.Run(ctx)
//
// A notifier makes one attempt at a time and reports how it went. The monitor keeps what is not yet
// delivered and tries again with growing pauses, so nothing else needs to be started. An attempt that
// is answered with status 429, 408, 425 or 5xx is repeated soon, but not before the time that a
// Retry-After header asks for. Any other status that is not 2xx is a refusal, which may be temporary,
// as when a token has expired. A refused alert is tried again every 5 minutes, or after a Repeat if
// that is less, and holds up no other alert. Redirects are not followed.
//
// Each server has a breaker before it, so that a server that is down is left alone. It is an ordinary
// breaker, which can be exported and watched like others.
//
// URLs and headers often hold keys. They appear in no error, log line or printed form of this package,
// and neither do the answers of servers.
package notify
