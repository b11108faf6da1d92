// Package otellog writes what weir logs to OpenTelemetry: state changes of breakers
// as events, and alerts as records.
//
// weir logs through [log/slog], and nothing else. So this is a slog handler over a
// LoggerProvider:
//
//	logger := slog.New(otellog.NewHandler(provider))
//	payments := breaker.New("payments", breaker.Config{OnChange: breaker.LogChanges(logger)})
//	monitor := alert.NewMonitor(alert.Config{Notify: []alert.Notifier{alert.Log(logger)}}, rules...)
//
// Any slog handler for OpenTelemetry would do. What this one adds is the name of the
// event: the attribute event.name, which breaker.LogChanges writes, becomes the
// record's EventName, by which backends tell events from text.
//
//	event name  weir.breaker.transition
//	attributes  weir.breaker.name, weir.breaker.state, from, reason, origin, at, seq, calls, failures
package otellog
