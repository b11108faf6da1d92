// Package producer hands the distributions of weir to OpenTelemetry's SDK, as the
// exponential histograms that they are, without loss.
//
// The metrics API cannot observe a histogram that is kept elsewhere, so they go by the
// SDK's way for figures from outside: a producer, which is given to a reader.
//
//	histograms, err := producer.New(payments, users)
//	if err != nil {
//		return err
//	}
//	reader := metric.NewPeriodicReader(exporter, metric.WithProducer(histograms))
//
// All other figures of the same sources go through the package otelmetric, which
// needs the API alone; this one is what needs the SDK.
//
// A breaker has a distribution, weir.breaker.call.duration, if breaker.Config.Latency
// is set. It goes out with scale 3.
//
// # Limits
//
// Temporality is cumulative, whatever the reader prefers. Each point begins when its
// source did ([stat.Series].Created).
//
// A histogram that cannot be exported is left out: a second of one name and
// attributes that turns up later, one of an instrument that no source showed to New,
// or one that no backend would take. A source that panics while being read loses what
// it had still to say, and the first time that is logged through [log/slog].
package producer
