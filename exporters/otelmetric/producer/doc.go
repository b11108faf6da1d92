// Package producer exports weir's distributions to OpenTelemetry's SDK as exponential histograms,
// without loss.
//
// The metrics API cannot observe a histogram that is kept elsewhere. The SDK accepts such
// histograms from a producer that is given to a reader:
//
//	histograms, err := producer.New(producer.Config{}, payments, users)
//	if err != nil {
//		return err
//	}
//	reader := metric.NewPeriodicReader(exporter, metric.WithProducer(histograms))
//
// Export all other metrics of the same sources with package otelmetric. It needs only the API,
// while this package needs the SDK.
//
// A breaker has the distribution weir.breaker.call.duration if breaker.Config.Latency is set. It is
// exported with scale 3.
//
// # Config
//
//	Config      Default  Change it
//	Delta       false    for a reader that wants what came since the last collection
//	Attributes  all      to export fewer series, such as one for all keys of a group
//
// # Flow
//
//	source ──► producer ──► reader of the SDK ──► exporter
//	              ▲              │
//	              └──────────────┘ asks at each collection
//
// # Limits
//
// The views, the cardinality limit and the temporality of the SDK do not apply to a producer: the
// SDK passes on what it produces. [Config] has the temporality and a filter of attributes instead.
// The temporality is cumulative by default. Each point then starts when its source was created:
// [stat.Series].Created. Histograms with different buckets cannot be summed: of those with the same
// attributes, the first is exported.
//
// A histogram that cannot be exported is left out: one with the name and attributes of another, one
// of an instrument that no source had in New, or one with invalid values. If a source panics while
// it is read, its remaining histograms are missing, and the first panic is logged with [log/slog].
package producer
