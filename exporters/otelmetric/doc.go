// Package otelmetric shows the figures of weir through OpenTelemetry's metrics API.
//
// One call registers all sources (gates, breakers, alert monitors, your own
// implementations of [stat.Source]) with a meter provider:
//
//	registration, err := otelmetric.Register(otel.GetMeterProvider(), payments, users, monitor)
//
// [Registration.Add] and [Registration.Remove] are for sources that come and go. All
// registrations with one provider share one callback and one set of names.
//
// It needs the API alone; which SDK collects, how often, and where it sends the
// figures is the program's affair. The names, units and attributes are those of
// docs/metrics.md, by kind:
//
//	stat.Counter  Float64ObservableCounter
//	stat.UpDown   Float64ObservableUpDownCounter
//	stat.Gauge    Float64ObservableGauge
//
// The API has nothing observable for a stat.Distribution: the package producer beside
// this one hands those to the SDK.
//
// An attribute that does not apply to a series is left out. OpenTelemetry's
// exporter for Prometheus makes of all this what the package prom serves itself.
//
// # Cost
//
// A collection reads each source once, in one callback which takes no lock and
// allocates nothing for a series that it has met before. The callback shows all
// live series at each collection, whatever the temporality.
//
// # Limits
//
// The SDK folds what goes beyond 2,000 series of one instrument into one with the
// attribute otel.metric.overflow. A breaker has seven series of its state: with
// more than 285 of them, raise the limit (metric.WithCardinalityLimit of the SDK).
//
// The API has no place for the time at which a counter began: the start time of a
// point is that of the registration. Register a source when you make it, and the
// two are the same.
//
// To the SDK a series is its name and attributes. Where one source is removed and
// another of its name added between two collections, a reader of deltas is shown the
// difference of the two totals, once: give the other source a name of its own, or let a
// collection pass.
//
// # What goes wrong
//
// Two sources with different series of one name and attributes are refused by
// [Register] and [Registration.Add], whichever calls they came by. Where such series
// turn up later the first stays, the other is left out and counted in
// weir.exporter.skipped_samples, and so are series of an instrument that no source
// showed when it was added. A source that panics while being read loses what it had
// still to say, is counted in weir.exporter.source_panics, and the first time logged
// through [log/slog]. One that blocks holds up the collection: sources are expected
// not to.
package otelmetric
