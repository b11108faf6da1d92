// Package stat holds the few words that every part of weir shares: what a
// figure is called, and who can be asked for figures.
//
// Levels are pulled: a [Source] builds its [Series] once and yields a value for
// each whenever somebody asks. An exporter knows nothing but these words, so it
// works with everything in weir and with your own sources alike:
//
//	for s, value := range source.Observe {
//		fmt.Println(s.Instrument.Name, s.Values, value)
//	}
//
// A distribution is a [Histogram] instead of one value, and comes by
// [HistogramSource].
//
// An exporter of any kind is built on a [Set], which reads many sources together:
// each series once, with whatever the exporter keeps for it, and no source at the
// cost of another.
//
// The instruments of the library, their names, units and attributes, are listed
// by [Catalogue].
package stat
