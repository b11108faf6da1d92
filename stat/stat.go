package stat

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// Instrument describes one exported figure. Instruments are made once, shared
// by all sources of a kind, and not changed after that.
type Instrument struct {
	Name  string   // in OpenTelemetry's form: lower case, parts divided by dots
	Unit  string   // UCUM; an annotation such as {call} for counted things
	Help  string   // one sentence
	Kind  Kind     // how it grows, and what it may be added up over
	Attrs []string // the keys of its attributes

	// Bounds are where a distribution is cut for backends that have no exponential
	// buckets: upper bounds, ascending. Powers of two are bounds of the exponential
	// buckets too, and so exact; another is moved down to the next bound.
	Bounds []float64
}

// Series is one line of an instrument: the instrument with a value for each of
// its attributes. A source builds its series once and yields the same pointers
// ever after, so that an exporter may keep what it prepared for one by its address.
type Series struct {
	Instrument *Instrument // what the line belongs to
	Values     []string    // in the order of Instrument.Attrs; "" where one does not apply

	// Created is when a counter or a distribution began at 0; zero where that is not
	// known. Exporters that can say so do, for it tells a restart from a pause.
	Created time.Time
}

// Series makes a series of the instrument, created now. Bytes that are not UTF-8
// are replaced by U+FFFD. Of a weir.group.key of more than 1,024 bytes, which a stranger
// may have chosen, the beginning is kept, and a hash of all of it, so that two of them
// stay apart. It panics unless there is one value for each attribute.
func (i *Instrument) Series(values ...string) *Series {
	if len(values) != len(i.Attrs) {
		panic(fmt.Sprintf("stat: %s takes %d attribute values, got %d", i.Name, len(i.Attrs), len(values)))
	}
	s := &Series{Instrument: i, Values: make([]string, len(values)), Created: time.Now()}
	for n, v := range values {
		s.Values[n] = strings.ToValidUTF8(v, "\uFFFD")
		if i.Attrs[n] == "weir.group.key" && max(len(v), len(s.Values[n])) > maxKey {
			s.Values[n] = shortened(v)
		}
	}
	return s
}

// maxKey is the most bytes that the key of a group's member has.
const maxKey = 1024

// shortened is the beginning of a key, and a hash of all of it.
func shortened(key string) string {
	sum := sha256.Sum256([]byte(key))
	end := "…" + base64.RawURLEncoding.EncodeToString(sum[:12])
	begin := strings.ToValidUTF8(key[:min(len(key), maxKey)], "\uFFFD")
	cut := min(maxKey-len(end), len(begin))
	for cut < len(begin) && !utf8.RuneStart(begin[cut]) {
		cut--
	}
	return begin[:cut] + end
}

// ID names the series among all others: two series with one ID are the same
// line to any backend, and so may not come from two different sources.
func (s *Series) ID() string {
	return s.Instrument.Name + "\xff" + strings.Join(s.Values, "\xff")
}

// Source is anything that has figures to show.
//
// Observe calls yield once for each series that has a value now, in any order, until
// yield returns false. So its figures can be read with a loop, which may be left:
//
//	for series, value := range source.Observe { … }
//
// Observe may be called at any time and from several goroutines; it takes no lock that
// a user's call could wait for, and holds none while yield runs. A series that has no
// meaningful value (a rate over too few calls, say) is left out.
type Source interface {
	Observe(yield func(s *Series, value float64) bool)
}

// HistogramSource is a source that has distributions too. Histograms is to them
// what Observe is to all other kinds. A source that is made of others passes on
// what they have.
type HistogramSource interface {
	Source
	Histograms(yield func(s *Series, h Histogram) bool)
}
