package read

import (
	"errors"
	"slices"
	"sync"

	"github.com/weir-go/weir/stat"
)

// Set is a set of sources that an exporter reads together. For each live series it keeps a T: what
// the exporter makes of a series once, such as the text of its line without the value.
//
// Make a set with [New]. It is safe for concurrent use. Readings never wait for each other, nor for
// sources that are added or removed.
//
// A reading leaves out
//
//   - the rest of a source that panics,
//   - a series that has the ID of a different live one: the first one stays,
//   - a series of an instrument that is not in [Set.Instruments],
//   - a series without an instrument, without one value for each attribute, with a single value
//     instead of a histogram for a distribution, or the other way round,
//   - a histogram with a negative count, or with a schema or bucket out of bounds.
//
// It counts them all in the set's own metrics weir.exporter.source_panics and
// weir.exporter.skipped_samples. The first panic is logged through [log/slog]. A source that blocks
// blocks the reading.
type Set[T any] struct {
	instruments *instruments
	members     *members
	adding      sync.Mutex // held by Add only
	values      seriesSet[T, float64]
	histograms  seriesSet[T, stat.Histogram]
}

// New returns a set of the sources, which it reads once to learn their instruments. A source may be
// given twice, or be part of another one, as a breaker is part of its gate: each series counts
// once.
//
// New returns an error if
//
//   - a source is nil,
//   - two different series have one ID, or two instruments of one name differ,
//   - an instrument has no name, no valid kind, a repeated attribute or invalid bounds,
//   - a series has not one value for each attribute, or is yielded by the method for another kind.
//
// The set calls form for each new series and keeps the result while the series is live. The series
// passed to form has valid UTF-8 and an instrument of [Set.Instruments]. Only [Set.Observe] and
// [Set.Histograms] call form, so it may use what the exporter derives from the instruments after
// New returns. Concurrent readings call it concurrently.
func New[T any](form func(*stat.Series) T, sources ...stat.Source) (*Set[T], error) {
	if err := refuseNil(sources); err != nil {
		return nil, err
	}
	s := &Set[T]{instruments: newInstruments(), members: newMembers()}
	own := newSelfMetrics()
	s.values.init(s, own, form)
	s.values.observe, s.values.valid, s.values.own = stat.Source.Observe, validValue, []*member{{source: own}}
	s.histograms.init(s, own, form)
	s.histograms.observe, s.histograms.valid, s.histograms.distributions = observeHistograms, validHistogram, true
	if err := s.addWithoutFault(s.members.missing(sources), s.instruments.addMissing); err != nil {
		return nil, err
	}
	return s, nil
}

// addWithoutFault reads new members and adds them if their series have no fault.
func (s *Set[T]) addWithoutFault(list []*member, learn func([]newSeries) error) error {
	values, histograms := s.values.collect(list), s.histograms.collect(list)
	if err := errors.Join(learn(values), learn(histograms)); err != nil {
		return err
	}
	s.values.check(values)
	s.histograms.check(histograms)
	if err := firstFault(values, histograms); err != nil {
		return err
	}
	s.values.checkConflicts(values)
	s.histograms.checkConflicts(histograms)
	if err := firstFault(values, histograms); err != nil {
		return err
	}
	s.values.pending.add(values)
	s.histograms.pending.add(histograms)
	s.members.add(list)
	return nil
}

// Instruments returns the instruments that the set can show: those of the library, and those that
// the sources given to [New] had in addition. The list never changes. The caller owns it.
func (s *Set[T]) Instruments() []*stat.Instrument { return slices.Clone(s.instruments.list) }

// Observe reads every source once and yields the T and the value of each live series once, in any
// order, the set's own metrics last. It forgets a series that its source no longer yields. If yield
// returns false, Observe reads no further and forgets nothing.
//
// yield runs while a source is being read. It should not block, and a panic in it counts as a panic
// of the source.
func (s *Set[T]) Observe(yield func(form T, value float64) bool) { s.values.read(yield) }

// Histograms is like Observe, for distributions. Histograms that it leaves out are counted in the
// metrics that Observe yields next, so an exporter that calls both calls Histograms first.
func (s *Set[T]) Histograms(yield func(form T, h stat.Histogram) bool) { s.histograms.read(yield) }

// Add adds sources, which the next reading shows. It reads each new source once. Its cost does not
// depend on how many sources there are already. Sources that are in the set already, by ==, are
// skipped.
//
// In the cases in which [New] fails, or if a source has an instrument that is not in
// [Set.Instruments], Add adds no source and returns an error. It compares with what the other
// sources showed when they were last read.
func (s *Set[T]) Add(sources ...stat.Source) error {
	if err := refuseNil(sources); err != nil {
		return err
	}
	s.adding.Lock()
	defer s.adding.Unlock()
	list := s.members.missing(sources)
	if len(list) == 0 {
		return nil
	}
	return s.addWithoutFault(list, func([]newSeries) error { return nil })
}

// Remove removes sources, by ==. The next reading no longer shows their series, except those that
// another source shows too.
func (s *Set[T]) Remove(sources ...stat.Source) {
	for _, source := range sources {
		if m := s.members.remove(source); m != nil {
			s.values.pending.remove(m)
			s.histograms.pending.remove(m)
		}
	}
}
