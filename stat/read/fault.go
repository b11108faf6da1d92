package read

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/weir-go/weir/stat"
)

// fault says why a series is left out of a reading.
type fault uint8

const (
	sound     fault = iota
	again           // met before in the same reading: no fault of anyone's
	duplicate       // another live series has its ID
	unknown         // its instrument is not in the dictionary
	malformed       // no instrument, not one value for each attribute, or what its kind does not have
	faults
)

var reasons = [faults]string{duplicate: "duplicate", unknown: "unknown", malformed: "malformed"}

// fresh is a series that the table of a reading does not have.
type fresh struct {
	series *stat.Series
	from   *member      // the member that showed it
	clean  *stat.Series // series with valid text and the dictionary's instrument
	id     string
	fault  fault
}

// examine looks at the series by itself, and sets what is derived from it. It came
// with a figure or with a histogram, as its instrument should have it.
func (f *fresh) examine(known *dictionary, own *health, distribution bool) fault {
	s := f.series
	if s == nil || s.Instrument == nil || len(s.Values) != len(s.Instrument.Attrs) || (s.Instrument.Kind == stat.Distribution) != distribution {
		return malformed
	}
	i := known.find(s.Instrument)
	if i == nil {
		return unknown
	}
	f.clean = i.Series(s.Values...)
	f.clean.Created = s.Created
	f.id = f.clean.ID()
	if own.has(i) && !own.shows(s) {
		return duplicate
	}
	return sound
}

// explain makes an error of the first fault: the others are mostly the same
// mistake seen in further series.
func explain(lists ...[]fresh) error {
	var first *fresh
	others := 0
	for _, f := range slices.Concat(lists...) {
		switch {
		case f.fault == sound || f.fault == again:
		case first == nil:
			first = &f
		default:
			others++
		}
	}
	if first == nil {
		return nil
	}
	if others > 0 {
		return fmt.Errorf("%w (and %d more series with faults)", first.err(), others)
	}
	return first.err()
}

func (f *fresh) err() error {
	switch {
	case f.fault == duplicate:
		return fmt.Errorf("stat: two different series are %s: sources need names of their own", label(f.clean))
	case f.fault == unknown:
		return fmt.Errorf("stat: the instrument %s is not one of those that the set was made with", f.series.Instrument.Name)
	case f.series == nil || f.series.Instrument == nil:
		return errors.New("stat: a series has no instrument")
	case len(f.series.Values) == len(f.series.Instrument.Attrs):
		return fmt.Errorf("stat: a series of %s came by the wrong method: distributions come by Histograms, all else by Observe",
			f.series.Instrument.Name)
	}
	return fmt.Errorf("stat: a series of %s has %d values for %d attributes",
		f.series.Instrument.Name, len(f.series.Values), len(f.series.Instrument.Attrs))
}

// label writes the series for people.
func label(s *stat.Series) string {
	pairs := make([]string, len(s.Values))
	for n, key := range s.Instrument.Attrs {
		pairs[n] = fmt.Sprintf("%s=%.64q", key, s.Values[n])
	}
	return s.Instrument.Name + "{" + strings.Join(pairs, ", ") + "}"
}

func refuseNil(sources []stat.Source) error {
	for n, s := range sources {
		if s == nil {
			return fmt.Errorf("stat: source %d of %d is nil", n+1, len(sources))
		}
	}
	return nil
}
