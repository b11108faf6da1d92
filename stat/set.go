package stat

import (
	"reflect"
	"slices"
	"sync"
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
//   - a series without an instrument, or without one value for each attribute.
//
// All are counted, in the set's own [ExporterSourcePanics] and
// [ExporterSkippedSamples], and the first panic is logged through [log/slog]. A
// source that blocks holds up the reading.
type Set[T any] struct {
	form    func(*Series) T
	known   *dictionary
	health  *health
	own     []Source // health alone
	sources atomic.Pointer[[]Source]
	table   atomic.Pointer[table[T]] // never changed once it is here
	idle    sync.Pool                // of *reading[T]
}

// NewSet makes a set of the sources, which it reads once to learn their
// instruments. A source that is given twice, or is part of another as a breaker
// is of its gate, is fine: a series counts once, whoever shows it.
//
// It fails if a source is nil, if two different series have one ID, if two
// instruments of one name differ, if an instrument lacks a name or a valid kind
// or has an attribute twice, or if a series has not one value for each attribute.
//
// The set calls form for series that are new to it, and keeps the result while
// they are live. What form is given has valid UTF-8 and an instrument out of
// [Set.Instruments]. It is called by [Set.Observe] alone, so it may use what was
// made of the instruments between NewSet and the first reading; and it may be
// called from several goroutines, if several read.
func NewSet[T any](form func(*Series) T, sources ...Source) (*Set[T], error) {
	if err := refuseNil(sources); err != nil {
		return nil, err
	}
	h := newHealth()
	s := &Set[T]{form: form, known: newDictionary(), health: h, own: []Source{h}}
	list := slices.Clone(sources)
	s.sources.Store(&list)
	s.table.Store(newTable[T](0))

	r := s.begin(nil)
	defer s.end(r)
	s.read(list, r.note)
	if err := s.known.learn(r.fresh); err != nil {
		return nil, err
	}
	s.judge(r, 0)
	if err := explain(r.fresh); err != nil {
		return nil, err
	}
	return s, nil
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
	r := s.begin(yield)
	s.read(*s.sources.Load(), r.note)
	s.judge(r, 0)
	s.health.count(r.fresh)
	from := len(r.fresh)
	s.read(s.own, r.note)
	s.judge(r, from)
	if r.sound > 0 || r.live < len(r.table.entries) {
		s.table.Store(r.next(s.form))
	}
	s.end(r)
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

// check says what Observe would leave out of more, if it were read after present.
func (s *Set[T]) check(present, more []Source) error {
	if err := refuseNil(more); err != nil {
		return err
	}
	r := s.begin(nil)
	defer s.end(r)
	s.read(present, r.note)
	s.judge(r, 0)
	from := len(r.fresh)
	s.read(more, r.takeAsFresh)
	s.judge(r, from)
	return explain(r.fresh[from:])
}

func (s *Set[T]) begin(yield func(T, float64)) *reading[T] {
	r, ok := s.idle.Get().(*reading[T])
	if !ok {
		r = &reading[T]{}
		r.note = r.take
	}
	r.start(s.table.Load(), yield)
	return r
}

func (s *Set[T]) end(r *reading[T]) {
	r.stop()
	s.idle.Put(r)
}

func (s *Set[T]) read(sources []Source, note func(*Series, float64)) {
	for _, source := range sources {
		s.health.read(source, note)
	}
}

// judge finds the fault, or none, of each fresh series of the reading. It runs
// after all sources were read: a newcomer must not take the ID of a series that
// was there before it, in whatever order their sources stand.
func (s *Set[T]) judge(r *reading[T], from int) {
	for n := from; n < len(r.fresh); n++ {
		f := &r.fresh[n]
		f.fault = f.examine(s.known, s.health)
		if f.fault == sound {
			f.fault = r.claim(f)
		}
	}
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
