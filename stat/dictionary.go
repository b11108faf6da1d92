package stat

import (
	"errors"
	"fmt"
	"slices"
)

// dictionary has the instruments that a set can show, no two of one name.
type dictionary struct {
	list   []*Instrument
	byName map[string]*Instrument
}

// newDictionary makes a dictionary of the library's instruments.
func newDictionary() *dictionary {
	d := &dictionary{list: Catalogue(), byName: make(map[string]*Instrument)}
	for _, i := range d.list {
		d.byName[i.Name] = i
	}
	return d
}

// learn adds the instruments whose names are new.
func (d *dictionary) learn(list []fresh) error {
	var errs []error
	for _, f := range list {
		if f.series == nil || f.series.Instrument == nil {
			continue
		}
		if i := f.series.Instrument; d.byName[i.Name] == nil {
			d.list = append(d.list, i)
			d.byName[i.Name] = i
			errs = append(errs, i.validate())
		}
	}
	return errors.Join(errs...)
}

// find gives the instrument that stands for i here, nil if there is none.
func (d *dictionary) find(i *Instrument) *Instrument {
	known := d.byName[i.Name]
	if known == i || known != nil && known.Unit == i.Unit && known.Kind == i.Kind && slices.Equal(known.Attrs, i.Attrs) {
		return known
	}
	return nil
}

func (i *Instrument) validate() error {
	attrs := slices.Sorted(slices.Values(i.Attrs))
	switch {
	case i.Name == "":
		return errors.New("stat: an instrument has no name")
	case i.Kind < Counter || i.Kind > Gauge:
		return fmt.Errorf("stat: the instrument %s is of %s, must be a counter, an up-down counter or a gauge", i.Name, i.Kind)
	case len(slices.Compact(attrs)) < len(i.Attrs):
		return fmt.Errorf("stat: the instrument %s has an attribute twice: %q", i.Name, i.Attrs)
	}
	return nil
}
