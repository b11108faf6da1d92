// Package stat has the types through which metrics leave the library.
//
// A [Source] is anything that has metrics: a breaker, a limiter, a window, a gate, or a type of
// your own. An exporter reads it on demand, with a loop:
//
//	for series, value := range source.Observe {
//		fmt.Println(series.Instrument.Name, series.Values, value)
//	}
//
// An [Instrument] describes a metric: its name, unit, kind and attributes. A [Series] is one line
// of the metric, with a value for each attribute. A distribution has a [Histogram] instead of one
// value, and is read from a [HistogramSource].
//
//	Source ──► Series, value ──────► exporter, which asks at each collection
//	             │
//	             └──► Instrument     name, unit, kind, attributes
//
// To export metrics of your own, implement Source and give it to the exporter. To write an
// exporter, use the Set of package [github.com/weir-go/weir/stat/read].
//
// # Guarantees
//
//   - A source makes its series once and yields the same pointers at every reading.
//   - A call never waits for an exporter, because exporters ask.
//
// docs/metrics.md lists the metrics of the library.
package stat
