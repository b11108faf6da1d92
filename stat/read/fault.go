package read

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/weir-go/weir/stat"
)

// fault is the reason why a series is left out of a reading.
type fault uint8

const (
	noFault   fault = iota
	repeated        // already yielded in the same reading, which is allowed
	duplicate       // another live series has its ID
	unknown         // the set does not know its instrument
	// no instrument, not one value per attribute, or a value that backends do not accept.
	malformed
	faults
)

var faultNames = [faults]string{duplicate: "duplicate", unknown: "unknown", malformed: "malformed"}

// newSeries is a series that is not in the table of a reading.
type newSeries struct {
	series  *stat.Series
	from    *member      // the member that showed it
	cleaned *stat.Series // series with valid text and an instrument of the set
	id      string
	fault   fault
}

// check returns the fault of the series by itself, and sets cleaned and id. distribution says
// whether it came with a histogram.
func (f *newSeries) check(known *instruments, own *selfMetrics, distribution bool) fault {
	s := f.series
	if s == nil || s.Instrument == nil || len(s.Values) != len(s.Instrument.Attrs) || (s.Instrument.Kind == stat.Distribution) != distribution {
		return malformed
	}
	i := known.find(s.Instrument)
	if i == nil {
		return unknown
	}
	f.cleaned = i.Series(s.Values...)
	f.cleaned.Created = s.Created
	f.id = f.cleaned.ID()
	if own.owns(i) && !own.shows(s) {
		return duplicate
	}
	return noFault
}

// firstFault returns an error for the first fault, since the others are mostly the same mistake,
// and how many others there are.
func firstFault(lists ...[]newSeries) error {
	var first *newSeries
	others := 0
	for _, f := range slices.Concat(lists...) {
		switch {
		case f.fault == noFault || f.fault == repeated:
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

func (f *newSeries) err() error {
	switch {
	case f.fault == duplicate:
		return fmt.Errorf("stat: two different series are %s: each source needs a name of its own", seriesText(f.cleaned))
	case f.fault == unknown:
		return fmt.Errorf("stat: the instrument %s is not one of those that the set was made with", f.series.Instrument.Name)
	case f.series == nil || f.series.Instrument == nil:
		return errors.New("stat: a series has no instrument")
	case len(f.series.Values) == len(f.series.Instrument.Attrs):
		return fmt.Errorf("stat: a series of %s came by the wrong method: distributions come by Histograms, all others by Observe",
			f.series.Instrument.Name)
	}
	return fmt.Errorf("stat: a series of %s has %d values for %d attributes",
		f.series.Instrument.Name, len(f.series.Values), len(f.series.Instrument.Attrs))
}

// seriesText returns the series as text.
func seriesText(s *stat.Series) string {
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
