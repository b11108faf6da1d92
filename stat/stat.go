package stat

import (
	"fmt"
	"hash/maphash"
	"strings"
	"time"
	"unicode/utf8"
)

// Source is anything that has metrics.
//
// Observe calls yield once for each series that has a value now, in any order, until yield returns
// false. So the values can be read with a loop:
//
//	for series, value := range source.Observe { … }
//
// Observe may be called at any time, from several goroutines. It takes no lock that a user's call
// could wait for, and holds no lock while yield runs. It leaves out a series that has no meaningful
// value, such as a rate over too few calls.
type Source interface {
	Observe(yield func(s *Series, value float64) bool)
}

// HistogramSource is a source that has distributions too. Histograms is like Observe, for
// distributions. A source that consists of other sources yields the series of those too.
type HistogramSource interface {
	Source
	Histograms(yield func(s *Series, h Histogram) bool)
}

// Instrument describes a metric. It is made once, shared by all sources that have the metric, and
// not changed afterwards.
type Instrument struct {
	// Name is the name in OpenTelemetry's form: lower case, with dots between its parts.
	Name string
	// Unit is the unit in UCUM, or an annotation such as {call} for counted things.
	Unit string
	// Help is the description, one sentence.
	Help string
	// Kind is how the value behaves over time.
	Kind Kind
	// Attrs are the keys of the attributes.
	Attrs []string
	// Bounds are the upper bounds of a distribution's buckets, ascending, for backends without
	// exponential buckets. Powers of two are exact, because they are bounds of the exponential
	// buckets too. Any other bound is lowered to the nearest of those.
	Bounds []float64
}

// Series is one line of a metric: an instrument with a value for each attribute. A source makes its
// series once and yields the same pointers, so an exporter may cache what it prepares for a series
// by its address.
type Series struct {
	// Instrument is the metric.
	Instrument *Instrument
	// Values are the values of the attributes, in the order of Instrument.Attrs. "" means that the
	// attribute does not apply.
	Values []string
	// Created is when a counter or a distribution started from 0, or zero if that is not known. An
	// exporter that publishes it lets backends distinguish a restart from a gap.
	Created time.Time
}

// Series returns a series of the instrument, created now, with a value for each attribute. It
// replaces bytes that are not UTF-8 by U+FFFD. It cuts a weir.group.key of more than 1,024 bytes,
// which may come from an untrusted client, and ends it with a hash of the whole, so that keys stay
// distinct. The hash of a key is another one in each process. It panics if the number of values is
// not that of the attributes.
func (i *Instrument) Series(values ...string) *Series {
	if len(values) != len(i.Attrs) {
		panic(fmt.Sprintf("stat: %s takes %d attribute values, got %d", i.Name, len(i.Attrs), len(values)))
	}
	s := &Series{Instrument: i, Values: make([]string, len(values)), Created: time.Now()}
	for n, v := range values {
		s.Values[n] = strings.ToValidUTF8(v, "\uFFFD")
		if i.Attrs[n] == "weir.group.key" && max(len(v), len(s.Values[n])) > maxKey {
			s.Values[n] = shortenKey(v)
		}
	}
	return s
}

// maxKey bounds the bytes of a group member's key.
const maxKey = 1024

// keySeed is drawn for each process, so clients cannot choose keys with the same hash.
var keySeed = maphash.MakeSeed()

// shortenKey returns the beginning of a key and a hash of the whole.
func shortenKey(key string) string {
	end := fmt.Sprintf("…%016x", maphash.String(keySeed, key))
	begin := strings.ToValidUTF8(key[:min(len(key), maxKey)], "\uFFFD")
	cut := min(maxKey-len(end), len(begin))
	for cut < len(begin) && !utf8.RuneStart(begin[cut]) {
		cut--
	}
	return begin[:cut] + end
}

// ID identifies the series: two series with the same ID are the same line to any backend, so they
// must not come from two different sources.
func (s *Series) ID() string {
	return s.Instrument.Name + "\xff" + strings.Join(s.Values, "\xff")
}
