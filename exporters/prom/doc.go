// Package prom shows the figures of weir to Prometheus.
//
// One collector takes all sources (gates, breakers, alert monitors, your own
// implementations of [stat.Source]) and is registered like any other:
//
//	prometheus.MustRegister(prom.NewCollector(payments, users, monitor))
//
// # Names
//
// The instruments of the library are listed in docs/metrics.md. Their names in
// Prometheus are those that the package otelmetric and OpenTelemetry's exporter
// for Prometheus would give them:
//
//	weir.breaker.calls       {call}  counter  weir_breaker_calls_total{weir_breaker_name="payments",weir_breaker_outcome="success"}
//	weir.breaker.state.time  s       counter  weir_breaker_state_time_seconds_total{…}
//	weir.breaker.window.failure_ratio  1  gauge  weir_breaker_window_failure_ratio{…}
//
// A state is one series of 0 or 1 for each state. A ratio over too few calls is
// left out. An attribute that does not apply is an empty label, which is the same
// to Prometheus as none.
//
// # Histograms
//
// A [stat.Histogram] goes out as a native histogram, of the source's own schema, and
// as a classic one at the bounds of its instrument, both in one: Prometheus takes
// the native one where it is set up to, and the classic one otherwise. Breakers with
// breaker.Config.Latency have one, at 23 lines of text, or one native series:
//
//	histogram_quantile(0.99, sum by (le) (rate(weir_breaker_call_duration_seconds_bucket[5m])))  classic, within a factor of 2
//	histogram_quantile(0.99, sum(rate(weir_breaker_call_duration_seconds[5m])))                  native, within 9 %
//
// # Counters
//
// Counters and histograms carry the time at which they began ([stat.Series].Created), in the
// formats that have a place for it: protobuf, and OpenMetrics where
// promhttp.HandlerOpts asks for created samples.
//
// # Rules and a dashboard
//
// The folder mixin has a rules file for Prometheus and a dashboard for Grafana over
// these names. The command weir-rules writes the rules for your intervals:
//
//	go run github.com/weir-go/weir/cmd/weir-rules@latest -scrape 15s >alerts.yml
//
// # What goes wrong
//
// Two sources with different series of one name and attributes are refused when
// the collector is registered, or by [Collector.Add]. Where such series turn up
// later the first stays, the other is left out and counted in
// weir_exporter_skipped_samples_total. A source that panics while being read
// loses what it had still to say, is counted in
// weir_exporter_source_panics_total, and the first time logged through
// [log/slog]. One that blocks holds up the scrape: sources are expected not to.
package prom
