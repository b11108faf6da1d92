// Package otellog writes weir's logs to OpenTelemetry: state changes of breakers as events, and
// alerts as log records.
//
// weir logs only through [log/slog]. This package has a slog handler for a LoggerProvider:
//
//	logger := slog.New(otellog.NewHandler(provider))
//	payments := breaker.New("payments", breaker.Config{OnChange: breakerlog.Changes(logger)})
//	monitor := alert.NewMonitor(alert.Config{Notify: []alert.Notifier{alert.Log(logger)}}, rules...)
//
// Other slog handlers for OpenTelemetry work too. This one also sets the event name, by which
// backends tell events from other records: the attribute event.name, which breakerlog.Changes
// writes, becomes the record's EventName.
//
//	event name  weir.breaker.transition
//	attributes  weir.breaker.name, weir.breaker.state, from, reason, origin, at, seq, calls, failures
package otellog
