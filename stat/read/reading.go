package read

import (
	"github.com/weir-go/weir/stat"
)

// reading is one pass over the sources: what it has met, beside the table that
// it began with. It is used by one goroutine.
type reading[T, V any] struct {
	table   *table[T]
	yield   func(T, V) bool
	stopped bool                       // yield wants no more
	note    func(*stat.Series, V) bool // take, bound once: a method value allocates
	from    *member                    // the member that is being read
	seen    []bool                     // by slot of the table
	live    int                        // how many are seen
	moved   map[int]*member            // by slot: the member that shows a series whose first member is gone
	removed int64                      // members, when it began
	fresh   []fresh
	values  []V                     // of the fresh ones
	ids     map[string]*stat.Series // of the fresh ones that are sound
	sound   int                     // how many those are
}

func (r *reading[T, V]) start(t *table[T], removed int64, yield func(T, V) bool) {
	r.table, r.removed, r.yield, r.live, r.sound, r.stopped = t, removed, yield, 0, 0, false
	if n := len(t.entries); n <= cap(r.seen) {
		r.seen = r.seen[:n]
		clear(r.seen)
	} else {
		r.seen = make([]bool, n)
	}
}

// stop lets go of whatever belongs to others, since readings are kept for reuse.
func (r *reading[T, V]) stop() {
	r.table, r.yield, r.from, r.moved, r.ids = nil, nil, nil, nil, nil
	clear(r.fresh)
	clear(r.values)
	r.fresh, r.values = r.fresh[:0], r.values[:0]
}

// take is what sources yield to. A series met twice counts once: the breaker of
// a gate may be given beside the gate.
func (r *reading[T, V]) take(s *stat.Series, value V) bool {
	if r.stopped { // and the source has not noticed
		return false
	}
	slot, ok := r.table.slots[s]
	switch {
	case !ok:
		r.meet(s, value)
	case !r.seen[slot]:
		r.seen[slot] = true
		r.live++
		if r.removed != r.table.removed && r.table.entries[slot].from.gone.Load() {
			r.move(slot)
		}
		r.stopped = !r.yield(r.table.entries[slot].form, value)
	}
	return !r.stopped
}

func (r *reading[T, V]) move(slot int) {
	if r.moved == nil {
		r.moved = map[int]*member{}
	}
	r.moved[slot] = r.from
}

func (r *reading[T, V]) meet(s *stat.Series, value V) {
	r.fresh, r.values = append(r.fresh, fresh{series: s, from: r.from}), append(r.values, value)
}

// claim gives f its ID, unless another live series has it.
func (r *reading[T, V]) claim(f *fresh) fault {
	if slot, ok := r.table.owners[f.id]; ok && r.seen[slot] {
		return duplicate
	}
	switch owner, ok := r.ids[f.id]; {
	case !ok:
		if r.ids == nil {
			r.ids = make(map[string]*stat.Series)
		}
		r.ids[f.id] = f.series
		r.sound++
		return sound
	case owner == f.series:
		return again
	}
	return duplicate
}

// next makes the table that follows: what was seen of the last one, and the
// fresh series that are sound, which it yields.
func (r *reading[T, V]) next(form func(*stat.Series) T) *table[T] {
	t := newTable[T](r.live + r.sound)
	t.removed = r.removed
	for slot, e := range r.table.entries {
		if !r.seen[slot] {
			continue
		}
		if from := r.moved[slot]; from != nil {
			e.from = from
		}
		t.add(e)
	}
	for n, f := range r.fresh {
		if f.fault == sound {
			e := entry[T]{claim: claim{f.series, f.from}, id: f.id, form: form(f.clean)}
			t.add(e)
			r.stopped = r.stopped || !r.yield(e.form, r.values[n])
		}
	}
	return t
}

// table holds the series that were live when it was made. No two have one ID.
type table[T any] struct {
	slots   map[*stat.Series]int
	owners  map[string]int // slots by ID
	entries []entry[T]
	removed int64 // members, when it was made
}

type entry[T any] struct {
	claim
	id   string
	form T
}

func newTable[T any](size int) *table[T] {
	return &table[T]{
		slots:   make(map[*stat.Series]int, size),
		owners:  make(map[string]int, size),
		entries: make([]entry[T], 0, size),
	}
}

func (t *table[T]) add(e entry[T]) {
	t.slots[e.series] = len(t.entries)
	t.owners[e.id] = len(t.entries)
	t.entries = append(t.entries, e)
}
