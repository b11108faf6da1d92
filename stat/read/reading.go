package read

import (
	"github.com/weir-go/weir/stat"
)

// reading is one pass over the sources. It holds the series that it has found and that the table
// does not have. One goroutine uses it.
type reading[T, V any] struct {
	table   *table[T]
	yield   func(T, V) bool
	stopped bool // yield has returned false
	// the method add, bound once, because a method value allocates
	yieldSeries func(*stat.Series, V) bool
	from        *member // the member that is being read
	seen        []bool  // by slot of the table
	live        int     // how many slots are seen
	// by slot: the member that shows a series whose first member was removed
	reassigned map[int]*member
	removals   int64 // of members, when the reading began
	fresh      []newSeries
	values     []V                     // of the new series
	ids        map[string]*stat.Series // of the new series without a fault
	accepted   int                     // how many those are
}

func (r *reading[T, V]) start(t *table[T], removals int64, yield func(T, V) bool) {
	r.table, r.removals, r.yield, r.live, r.accepted, r.stopped = t, removals, yield, 0, 0, false
	if n := len(t.entries); n <= cap(r.seen) {
		r.seen = r.seen[:n]
		clear(r.seen)
	} else {
		r.seen = make([]bool, n)
	}
}

// reset drops all references, because readings are kept for reuse.
func (r *reading[T, V]) reset() {
	r.table, r.yield, r.from, r.reassigned, r.ids = nil, nil, nil, nil, nil
	clear(r.fresh)
	clear(r.values)
	r.fresh, r.values = r.fresh[:0], r.values[:0]
}

// add is the yield function that sources call. A series that is yielded twice counts once: the
// breaker of a gate may be in the set in addition to the gate.
func (r *reading[T, V]) add(s *stat.Series, value V) bool {
	if r.stopped { // the source has not noticed
		return false
	}
	slot, ok := r.table.slots[s]
	switch {
	case !ok:
		r.fresh, r.values = append(r.fresh, newSeries{series: s, from: r.from}), append(r.values, value)
	case !r.seen[slot]:
		r.seen[slot] = true
		r.live++
		if r.removals != r.table.removals && r.table.entries[slot].from.removed.Load() {
			r.reassign(slot)
		}
		r.stopped = !r.yield(r.table.entries[slot].form, value)
	}
	return !r.stopped
}

// reassign makes the member that is being read the owner of a slot.
func (r *reading[T, V]) reassign(slot int) {
	if r.reassigned == nil {
		r.reassigned = map[int]*member{}
	}
	r.reassigned[slot] = r.from
}

// acquireID gives f its ID, unless another live series has it.
func (r *reading[T, V]) acquireID(f *newSeries) fault {
	if slot, ok := r.table.byID[f.id]; ok && r.seen[slot] {
		return duplicate
	}
	switch owner, ok := r.ids[f.id]; {
	case !ok:
		if r.ids == nil {
			r.ids = make(map[string]*stat.Series)
		}
		r.ids[f.id] = f.series
		r.accepted++
		return noFault
	case owner == f.series:
		return repeated
	}
	return duplicate
}

// nextTable returns the table for the next reading: the entries of the last table whose series are
// still there, and the new series without a fault. It yields the values of the new series.
func (r *reading[T, V]) nextTable(form func(*stat.Series) T) *table[T] {
	t := newTable[T](r.live + r.accepted)
	t.removals = r.removals
	for slot, e := range r.table.entries {
		if !r.seen[slot] {
			continue
		}
		if from := r.reassigned[slot]; from != nil {
			e.from = from
		}
		t.add(e)
	}
	for n, f := range r.fresh {
		if f.fault == noFault {
			e := entry[T]{seriesOwner: seriesOwner{f.series, f.from}, id: f.id, form: form(f.cleaned)}
			t.add(e)
			r.stopped = r.stopped || !r.yield(e.form, r.values[n])
		}
	}
	return t
}

// table holds the series that were live when it was made, by unique IDs.
type table[T any] struct {
	slots    map[*stat.Series]int
	byID     map[string]int // slots
	entries  []entry[T]
	removals int64 // of members, when it was made
}

type entry[T any] struct {
	seriesOwner
	id   string
	form T
}

func newTable[T any](size int) *table[T] {
	return &table[T]{
		slots:   make(map[*stat.Series]int, size),
		byID:    make(map[string]int, size),
		entries: make([]entry[T], 0, size),
	}
}

func (t *table[T]) add(e entry[T]) {
	t.slots[e.series] = len(t.entries)
	t.byID[e.id] = len(t.entries)
	t.entries = append(t.entries, e)
}
