package read

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/weir-go/weir/internal/instrument"
	"github.com/weir-go/weir/stat"
)

// instruments holds the instruments that a set can show, by unique names.
type instruments struct {
	list   []*stat.Instrument
	byName map[string]*stat.Instrument
}

// newInstruments returns the instruments of the library.
func newInstruments() *instruments {
	d := &instruments{list: instrument.All(), byName: make(map[string]*stat.Instrument)}
	for _, i := range d.list {
		d.byName[i.Name] = i
	}
	return d
}

// addMissing adds the instruments that have new names.
func (d *instruments) addMissing(list []newSeries) error {
	var errs []error
	for _, f := range list {
		if f.series == nil || f.series.Instrument == nil {
			continue
		}
		if i := f.series.Instrument; d.byName[i.Name] == nil {
			d.list = append(d.list, i)
			d.byName[i.Name] = i
			errs = append(errs, validateInstrument(i))
		}
	}
	return errors.Join(errs...)
}

// find returns the instrument that is or equals i, or nil if there is none.
func (d *instruments) find(i *stat.Instrument) *stat.Instrument {
	known := d.byName[i.Name]
	if known == i || known != nil && sameInstrument(known, i) {
		return known
	}
	return nil
}

// sameInstrument reports whether two instruments of one name are interchangeable.
func sameInstrument(i, j *stat.Instrument) bool {
	return i.Unit == j.Unit && i.Kind == j.Kind && slices.Equal(i.Attrs, j.Attrs) && slices.Equal(i.Bounds, j.Bounds)
}

var kinds = []stat.Kind{stat.Counter, stat.UpDown, stat.Gauge, stat.Distribution}

func validateInstrument(i *stat.Instrument) error {
	attrs := slices.Sorted(slices.Values(i.Attrs))
	switch {
	case i.Name == "":
		return errors.New("stat: an instrument has no name")
	case !slices.Contains(kinds, i.Kind):
		return fmt.Errorf("stat: the instrument %s has the kind %q, must be %q, %q, %q or %q", i.Name, i.Kind, kinds[0], kinds[1], kinds[2], kinds[3])
	case len(slices.Compact(attrs)) < len(i.Attrs):
		return fmt.Errorf("stat: the instrument %s has an attribute twice: %q", i.Name, i.Attrs)
	case i.Kind != stat.Distribution && i.Bounds != nil:
		return fmt.Errorf("stat: the instrument %s has bounds and is a %s, must be a distribution", i.Name, i.Kind)
	case !isAscending(i.Bounds):
		return fmt.Errorf("stat: the instrument %s has the bounds %v, must be finite and ascend from above 0", i.Name, i.Bounds)
	}
	return nil
}

func isAscending(bounds []float64) bool {
	last := 0.0
	for _, b := range bounds {
		if !(b > last) || math.IsInf(b, 0) { // NaN is not above anything
			return false
		}
		last = b
	}
	return true
}
