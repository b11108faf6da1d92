// Package stat has the types by which figures leave the library: what a metric is called, and how
// it is read.
//
// A [Source] is anything that has figures to show: a breaker, a limiter, a window, a gate, or a type
// of your own. An exporter reads it when somebody asks, with a loop:
//
//	for series, value := range source.Observe {
//		fmt.Println(series.Instrument.Name, series.Values, value)
//	}
//
// An [Instrument] describes a metric: its name, unit, kind and attributes. A [Series] is one line of
// it, with a value for each attribute. A source makes its series once and shows the same pointers at
// every reading. A distribution has a [Histogram] in the place of one value, and is read from a
// [HistogramSource].
//
// To export figures of your own beside those of the library, implement Source and give it to the
// exporter. To write an exporter, use a Set of package [github.com/weir-go/weir/stat/read].
//
// The metrics of the library are listed in docs/metrics.md of the repository.
package stat
