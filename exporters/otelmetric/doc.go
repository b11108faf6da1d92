// Package otelmetric exports weir's metrics through OpenTelemetry's metrics API.
//
// One call registers all sources with a meter provider: gates, breakers, alert monitors and your
// own implementations of [stat.Source].
//
//	registration, err := otelmetric.Register(otel.GetMeterProvider(), payments, users, monitor)
//
// The callback reads the sources when a reader of the SDK asks:
//
//	sources ──► callback ◄── asks ── meter provider ◄── at each collection ── reader
//
// Use [Registration.Add] and [Registration.Remove] for sources that come and go. All registrations
// with one provider share one callback and one set of names.
//
// The package needs only the API. The program decides which SDK collects the metrics, how often,
// and where it sends them. The names, units and attributes are those of docs/metrics.md. The kinds
// are mapped to instruments as follows:
//
//	stat.Counter  Float64ObservableCounter
//	stat.UpDown   Float64ObservableUpDownCounter
//	stat.Gauge    Float64ObservableGauge
//
// The API has no observable instrument for a stat.Distribution. Package producer, next to this one,
// passes those to the SDK.
//
// An attribute that does not apply to a series is left out. Through OpenTelemetry's exporter for
// Prometheus, the metrics have the same names as from package prom.
//
// # Limits
//
// From v1.44.0 on, the SDK merges all series of an instrument beyond 2,000 into one with the
// attribute otel.metric.overflow. A breaker has eight series of its state, so raise the limit for
// more than 249 breakers (metric.WithCardinalityLimit of the SDK).
//
// The API does not support start times of counters: a point starts at the time of the registration.
// Register a source when you create it, so that the two are the same. Do not register it again
// later: if a collection has lacked a source, the SDK has forgotten its totals, and readers with
// delta temporality get them a second time.
//
// The SDK identifies a series by its name and attributes. If a source is replaced by another with
// the same name between two collections, readers with delta temporality get the difference of the
// two totals once. Give the new source another name, or wait for a collection in between.
//
// # Guarantees
//
//   - A collection reads each source once, in one callback. The callback takes no lock and does not
//     allocate for a series that it has seen before. It observes all series at each collection,
//     whatever the temporality.
//   - Two sources with different series of the same name and attributes are refused by [Register]
//     and [Registration.Add], also across registrations. If such series appear later, the first one
//     stays, and the other is left out and counted in weir.exporter.skipped_samples. So are series
//     of an instrument that the source did not have when it was added.
//   - If a source panics while it is read, its remaining series are missing. The panic is counted
//     in weir.exporter.source_panics, and the first one is logged with [log/slog].
//   - A source must not block, because the collection waits for it.
package otelmetric
