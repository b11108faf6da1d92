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
// A source with a method Sources() []stat.Source, such as a weirconfig.Set, stands for itself and
// for the sources that the method returns. Each reading calls the method, so sources that it
// returns later are read too, and their faults are counted. Methods Sources of these sources are
// not called.
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
	adding      sync.Mutex // held while members are inserted, never while a source is read
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
	if err := s.addWithoutFault(sources, s.instruments.addMissing); err != nil {
		return nil, err
	}
	return s, nil
}

// addWithoutFault reads the sources that are new and adds them if their series have no fault.
func (s *Set[T]) addWithoutFault(sources []stat.Source, learn func([]newSeries) error) error {
	a := &addition{members: s.members.missing(sources), liveValues: map[seriesOwner]bool{}, liveHistograms: map[seriesOwner]bool{}}
	if len(a.members) == 0 {
		return nil
	}
	a.values, a.histograms = s.values.collect(a.members), s.histograms.collect(a.members)
	if err := errors.Join(learn(a.values), learn(a.histograms)); err != nil {
		return err
	}
	s.values.check(a.values)
	s.histograms.check(a.histograms)
	if err := firstFault(a.values, a.histograms); err != nil {
		return err
	}
	for {
		values, histograms, err := s.insert(a)
		if len(values)+len(histograms) == 0 {
			return err
		}
		s.values.readOwners(values, a.liveValues)
		s.histograms.readOwners(histograms, a.liveHistograms)
	}
}

// addition is new members, the series that they showed, and whether other series that have the IDs
// of these are live, as far as that has been read.
type addition struct {
	members                    []*member
	values, histograms         []newSeries
	liveValues, liveHistograms map[seriesOwner]bool
}

// insert adds the members of an addition, unless other series have their IDs and it has to be read
// first whether these are live. It then returns their owners.
func (s *Set[T]) insert(a *addition) (values, histograms []seriesOwner, err error) {
	s.adding.Lock()
	defer s.adding.Unlock()
	a.members = s.members.number(a.members)
	shownValues, shownHistograms := seriesOfMembers(a.values), seriesOfMembers(a.histograms)
	values = s.values.checkConflicts(shownValues, a.liveValues)
	histograms = s.histograms.checkConflicts(shownHistograms, a.liveHistograms)
	if len(values)+len(histograms) > 0 {
		return values, histograms, nil
	}
	if err := firstFault(shownValues, shownHistograms); err != nil {
		return nil, nil, err
	}
	s.values.pending.add(shownValues)
	s.histograms.pending.add(shownHistograms)
	s.members.add(a.members)
	return nil, nil, nil
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
//
// A slow source delays no other call of Add. Sources may call all methods of the set while they are
// read. But a source that adds itself while Add reads it for the first time is read again, without
// end if it does so each time.
func (s *Set[T]) Add(sources ...stat.Source) error {
	if err := refuseNil(sources); err != nil {
		return err
	}
	return s.addWithoutFault(sources, func([]newSeries) error { return nil })
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
