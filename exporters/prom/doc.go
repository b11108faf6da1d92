// Package prom exports weir's metrics to Prometheus.
//
// One collector serves all sources: gates, breakers, alert monitors and your own implementations of
// [stat.Source]. Register it like any other collector:
//
//	prometheus.MustRegister(prom.NewCollector(payments, users, monitor))
//
// The collector reads the sources when Prometheus asks:
//
//	sources ──► collector ◄── asks ── registry ◄── scrapes ── Prometheus
//
// # Names
//
// The instruments of weir are listed in docs/metrics.md. Their names in Prometheus are those that
// package otelmetric together with OpenTelemetry's exporter for Prometheus would produce:
//
//	weir.breaker.calls                 {call}  counter  weir_breaker_calls_total{weir_breaker_name="payments",weir_breaker_outcome="success"}
//	weir.breaker.state_time            s       counter  weir_breaker_state_time_seconds_total{…}
//	weir.breaker.window.failure_ratio  1       gauge    weir_breaker_window_failure_ratio{…}
//
// A state is one series of 0 or 1 per possible state. A ratio over too few calls has no series. An
// attribute that does not apply is an empty label, which Prometheus treats like a missing one.
//
// # Histograms
//
// A [stat.Histogram] is exported both as a native histogram with the schema of the source and as a
// classic one with the bounds of its instrument. Prometheus takes the native one if it is
// configured to, and the classic one otherwise. Breakers with breaker.Config.Latency have a
// histogram: 23 lines of text, or one native series.
//
//	histogram_quantile(0.99, sum by (le) (rate(weir_breaker_call_duration_seconds_bucket[5m])))  classic, within a factor of 2
//	histogram_quantile(0.99, sum(rate(weir_breaker_call_duration_seconds[5m])))                  native, within 9 %
//
// If breaker.Config.Trace is set, the buckets have exemplars: calls with their trace_id and
// span_id. They are in protobuf, and in OpenMetrics if promhttp.HandlerOpts has EnableOpenMetrics.
// Prometheus stores them if it is started with --enable-feature=exemplar-storage.
//
// # Start times
//
// Counters and histograms carry the time at which they began, [stat.Series].Created, in the formats
// that support it: protobuf, and OpenMetrics if promhttp.HandlerOpts enables created samples.
//
// # Rules and a dashboard
//
// The folder mixin has a rules file for Prometheus and a dashboard for Grafana. The command
// weir-rules writes the rules for your intervals:
//
//	go run github.com/weir-go/weir/cmd/weir-rules@latest -scrape 15s >alerts.yml
//
// # Guarantees
//
//   - Two sources with different series of the same name and attributes are refused when the
//     collector is registered, or by [Collector.Add]. If such series appear later, the first one
//     stays, and the other is left out and counted in weir_exporter_skipped_samples_total.
//   - If a source panics while it is read, its remaining series are missing. The panic is counted
//     in weir_exporter_source_panics_total, and the first one is logged with [log/slog].
//   - A source must not block, because the scrape waits for it.
package prom
