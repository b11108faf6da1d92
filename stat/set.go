package stat

import (
	"errors"
	"reflect"
	"slices"
	"sync/atomic"
)

// Set is a set of sources that an exporter reads together. For each live series
// it keeps a T, whatever the exporter makes of a series once so as not to make
// it at every reading: a metric without its value, a line of a page.
//
// A set is made with [NewSet] and safe for concurrent use. Readings take no lock
// and never wait for each other, nor for sources that are added or removed.
//
// What is wrong with some sources does not cost the others. Left out of a
// reading are
//
//   - what a source had still to say when it panicked,
//   - a series that has the ID of a different one: the first stays, as long as it is live,
//   - a series of an instrument that is not one of [Set.Instruments],
//   - a series without an instrument, without one value for each attribute, or with
//     a figure where a distribution has a histogram, or the other way round,
//   - a histogram with a negative count, or a schema or bucket out of bounds.
//
// All are counted, in the set's own [ExporterSourcePanics] and
// [ExporterSkippedSamples], and the first panic is logged through [log/slog]. A
// source that blocks holds up the reading.
type Set[T any] struct {
	known      *dictionary
	sources    atomic.Pointer[[]Source]
	figures    book[T, float64]
	histograms book[T, Histogram]
}

// NewSet makes a set of the sources, which it reads once to learn their
// instruments. A source that is given twice, or is part of another as a breaker
// is of its gate, is fine: a series counts once, whoever shows it.
//
// It fails if a source is nil, if two different series have one ID, if two
// instruments of one name differ, if an instrument lacks a name or a valid kind,
// has an attribute twice or bounds that do not fit, or if a series has not one value
// for each attribute or comes by the method of another kind.
//
// The set calls form for series that are new to it, and keeps the result while
// they are live. What form is given has valid UTF-8 and an instrument out of
// [Set.Instruments]. It is called by [Set.Observe] and [Set.Histograms] alone, so it
// may use what was made of the instruments between NewSet and the first reading; and
// it may be called from several goroutines, if several read.
func NewSet[T any](form func(*Series) T, sources ...Source) (*Set[T], error) {
	if err := refuseNil(sources); err != nil {
		return nil, err
	}
	known, h := newDictionary(), newHealth()
	s := &Set[T]{
		known:      known,
		figures:    book[T, float64]{form: form, look: Source.Observe, known: known, health: h, own: []Source{h}},
		histograms: book[T, Histogram]{distributions: true, form: form, look: histogramsOf, sane: Histogram.sane, known: known, health: h},
	}
	list := slices.Clone(sources)
	s.sources.Store(&list)
	s.figures.table.Store(newTable[T](0))
	s.histograms.table.Store(newTable[T](0))
	if err := s.learn(list); err != nil {
		return nil, err
	}
	return s, nil
}

// learn reads the sources for the first time.
func (s *Set[T]) learn(sources []Source) error {
	f, h := s.figures.begin(nil), s.histograms.begin(nil)
	defer s.figures.end(f)
	defer s.histograms.end(h)
	s.figures.read(sources, f.note)
	s.histograms.read(sources, h.note)
	if err := errors.Join(s.known.learn(f.fresh), s.known.learn(h.fresh)); err != nil {
		return err
	}
	s.figures.judge(f, 0)
	s.histograms.judge(h, 0)
	return explain(slices.Concat(f.fresh, h.fresh))
}

// Instruments lists the instruments that the set can show: those of [Catalogue],
// and those that the sources given to [NewSet] showed beside them. The list
// never changes, and the caller owns it.
func (s *Set[T]) Instruments() []*Instrument { return slices.Clone(s.known.list) }

// Observe reads every source once and yields the T and the value of each live
// series once, in any order, the set's own figures last. A series that its
// source no longer yields is forgotten.
//
// A yield runs while a source is being read: it should not block, and its panic
// would be taken for one of the source's.
func (s *Set[T]) Observe(yield func(form T, value float64)) {
	s.figures.observe(*s.sources.Load(), yield)
}

// Histograms is to distributions what Observe is to all else, and has readings of
// its own. What it leaves out is counted in what Observe shows next, so an exporter
// of both calls it first.
func (s *Set[T]) Histograms(yield func(form T, h Histogram)) {
	s.histograms.observe(*s.sources.Load(), yield)
}

// Add adds sources, which it reads once, for the next reading to show. Where
// [NewSet] would have failed, or where one shows an instrument that is not one
// of [Set.Instruments], it adds none and returns an error. Sources that are
// there already, found by ==, change nothing.
func (s *Set[T]) Add(sources ...Source) error {
	for {
		old := s.sources.Load()
		if err := s.check(*old, sources); err != nil {
			return err
		}
		list := slices.Concat(without(*old, sources), sources)
		if s.sources.CompareAndSwap(old, &list) {
			return nil
		}
	}
}

// Remove removes sources, found by ==. From the next reading on their series are
// gone, save those that another source shows too.
func (s *Set[T]) Remove(sources ...Source) {
	for {
		old := s.sources.Load()
		list := without(*old, sources)
		if s.sources.CompareAndSwap(old, &list) {
			return
		}
	}
}

// check says what a reading would leave out of more, if it were read after present.
func (s *Set[T]) check(present, more []Source) error {
	if err := refuseNil(more); err != nil {
		return err
	}
	if err := s.figures.check(present, more); err != nil {
		return err
	}
	return s.histograms.check(present, more)
}

func without(list, gone []Source) []Source {
	return slices.DeleteFunc(slices.Clone(list), func(s Source) bool {
		return slices.ContainsFunc(gone, func(g Source) bool { return same(s, g) })
	})
}

// same is a == b, and false where that would panic.
func same(a, b Source) bool {
	return reflect.ValueOf(a).Comparable() && a == b
}
