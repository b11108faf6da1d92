// Package notify passes alerts on over HTTP: to Alertmanager, to anything that
// takes Alertmanager's webhooks, and to Slack.
//
//	pager := notify.NewWebhook(notify.Config{URL: os.Getenv("PAGER_URL")})
//	monitor := alert.NewMonitor(alert.Config{Notify: []alert.Notifier{pager}}, rules...)
//	go monitor.Run(ctx)
//
// A notifier here makes one attempt at a time and says exactly how it went; the
// monitor keeps what is owed, tries again with growing pauses, and runs them all, so
// that nothing needs to be started here. Statuses 429, 408, 425 and 5xx are tried
// again soon, not before the time that a Retry-After header asks for. All others that are
// not 2xx are refusals, maybe for now only (a token that has expired, a page that is being
// moved): they are tried again every 5 minutes, or after a Repeat if that is less, and hold
// up no other alert. Redirects are not followed.
//
// A breaker stands before each server, so that a dead one is left in peace and costs
// nothing. It is an ordinary one, for your exporters to show.
//
// URLs and headers often hold keys. They appear in no error, log line or String of
// this package, and neither does what a server answered.
package notify
