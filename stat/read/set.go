package read

import (
	"errors"
	"slices"
	"sync"

	"github.com/weir-go/weir/stat"
)

// Set is a set of sources that an exporter reads together. For each live series
// it keeps a T, whatever the exporter makes of a series once so as not to make
// it at every reading: a metric without its value, a line of a page.
//
// A set is made with [New] and safe for concurrent use. Readings never wait for
// each other, nor for sources that are added or removed.
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
// All are counted, in the set's own metrics weir.exporter.source_panics and
// weir.exporter.skipped_samples, and the first panic is logged through [log/slog]. A
// source that blocks holds up the reading.
type Set[T any] struct {
	known      *dictionary
	members    *members
	adding     sync.Mutex // Add waits for another one, and for nothing else
	figures    book[T, float64]
	histograms book[T, stat.Histogram]
}

// New makes a set of the sources, which it reads once to learn their
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
// may use what was made of the instruments between New and the first reading; and
// it may be called from several goroutines, if several read.
func New[T any](form func(*stat.Series) T, sources ...stat.Source) (*Set[T], error) {
	if err := refuseNil(sources); err != nil {
		return nil, err
	}
	known, h, m := newDictionary(), newHealth(), newMembers()
	s := &Set[T]{
		known: known, members: m,
		figures: book[T, float64]{
			form: form, look: stat.Source.Observe, known: known, health: h, members: m, own: []*member{{source: h}}, claims: newClaims(),
		},
		histograms: book[T, stat.Histogram]{
			distributions: true, form: form, look: histogramsOf, sane: sane, known: known, health: h, members: m, claims: newClaims(),
		},
	}
	s.figures.table.Store(newTable[T](0))
	s.histograms.table.Store(newTable[T](0))
	if err := s.admit(s.members.absent(sources), known.learn); err != nil {
		return nil, err
	}
	return s, nil
}

// admit reads the members and adds them if nothing is wrong with what they show.
func (s *Set[T]) admit(list []*member, learn func([]fresh) error) error {
	f, h := s.figures.meet(list), s.histograms.meet(list)
	if err := errors.Join(learn(f), learn(h)); err != nil {
		return err
	}
	s.figures.examine(f)
	s.histograms.examine(h)
	if err := explain(f, h); err != nil {
		return err
	}
	s.figures.dispute(f)
	s.histograms.dispute(h)
	if err := explain(f, h); err != nil {
		return err
	}
	s.figures.claims.make(f)
	s.histograms.claims.make(h)
	s.members.add(list)
	return nil
}

// Instruments lists the instruments that the set can show: those of the
// library, and those that the sources given to [New] showed beside them. The list
// never changes, and the caller owns it.
func (s *Set[T]) Instruments() []*stat.Instrument { return slices.Clone(s.known.list) }

// Observe reads every source once and yields the T and the value of each live
// series once, in any order, the set's own figures last. A series that its
// source no longer yields is forgotten. If yield returns false, Observe reads no
// further and forgets nothing.
//
// A yield runs while a source is being read: it should not block, and its panic
// would be taken for one of the source's.
func (s *Set[T]) Observe(yield func(form T, value float64) bool) {
	s.figures.observe(yield)
}

// Histograms is to distributions what Observe is to all else, and has readings of
// its own. What it leaves out is counted in what Observe shows next, so an exporter
// of both calls it first.
func (s *Set[T]) Histograms(yield func(form T, h stat.Histogram) bool) {
	s.histograms.observe(yield)
}

// Add adds sources, which it reads once, for the next reading to show. What it costs
// does not depend on how many there are already.
//
// Where [New] would have failed, or where one shows an instrument that is not one of
// [Set.Instruments], it adds none and returns an error. What the others show is known
// from when they were last read. Sources that are there already, found by ==, change
// nothing.
func (s *Set[T]) Add(sources ...stat.Source) error {
	if err := refuseNil(sources); err != nil {
		return err
	}
	s.adding.Lock()
	defer s.adding.Unlock()
	list := s.members.absent(sources)
	if len(list) == 0 {
		return nil
	}
	return s.admit(list, func([]fresh) error { return nil })
}

// Remove removes sources, found by ==. From the next reading on their series are
// gone, save those that another source shows too.
func (s *Set[T]) Remove(sources ...stat.Source) {
	for _, source := range sources {
		if m := s.members.remove(source); m != nil {
			s.figures.claims.drop(m)
			s.histograms.claims.drop(m)
		}
	}
}
