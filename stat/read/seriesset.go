package read

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/weir-go/weir/stat"
)

// seriesSet is a part of a Set: either that for single values or that for histograms.
type seriesSet[T, V any] struct {
	distributions bool
	form          func(*stat.Series) T
	observe       func(s stat.Source, yield func(*stat.Series, V) bool)
	valid         func(*stat.Series, V) bool // reports whether backends accept a value
	instruments   *instruments
	metrics       *selfMetrics
	members       *members
	own           []*member                // the set's own source, if it has values of this sort
	table         atomic.Pointer[table[T]] // immutable once it is published
	pending       *pendingSeries           // series added since the table was made
	idle          sync.Pool                // of *reading[T, V]
}

func (h *seriesSet[T, V]) init(s *Set[T], own *selfMetrics, form func(*stat.Series) T) {
	h.form, h.instruments, h.members, h.metrics, h.pending = form, s.instruments, s.members, own, newPending()
	h.table.Store(newTable[T](0))
}

// observeHistograms yields the histograms of a source, if it has any.
func observeHistograms(s stat.Source, yield func(*stat.Series, stat.Histogram) bool) {
	if h, ok := s.(stat.HistogramSource); ok {
		h.Histograms(yield)
	}
}

// read reads the sources and yields their series. A reading that yield has stopped has not seen all
// series, so it leaves the table as it is.
func (h *seriesSet[T, V]) read(yield func(T, V) bool) {
	r := h.beginReading(yield)
	defer h.end(r)
	list := *h.members.list.Load()
	h.readMembers(r, list)
	if r.stopped {
		return
	}
	h.checkNew(r, 0)
	h.metrics.count(r.fresh)
	from := len(r.fresh)
	h.readMembers(r, h.own)
	h.checkNew(r, from)
	if r.stopped {
		return
	}
	next := r.table
	if r.accepted > 0 || r.live < len(r.table.entries) || len(r.reassigned) > 0 {
		next = r.nextTable(h.form)
	}
	// If another reading has published a table meanwhile, the table of this reading may lack series
	// that the other table has.
	if h.table.CompareAndSwap(r.table, next) && len(list) > 0 {
		h.pending.removeUpTo(list[len(list)-1].order)
	}
}

// collect reads members that are not in the set yet, and returns their series.
func (h *seriesSet[T, V]) collect(list []*member) (shown []newSeries) {
	var from *member
	yield := h.dropInvalid(func(s *stat.Series, _ V) bool {
		shown = append(shown, newSeries{series: s, from: from})
		return true
	})
	for _, from = range list {
		observeSafely(h.metrics, from.source, h.observe, yield)
		for _, s := range h.metrics.partsOf(from.source) {
			observeSafely(h.metrics, s, h.observe, yield)
		}
	}
	return shown
}

// check sets the fault of each collected series: faults of the series alone, and conflicts with
// other series.
func (h *seriesSet[T, V]) check(shown []newSeries) {
	ids := make(map[string]*stat.Series, len(shown))
	for n := range shown {
		f := &shown[n]
		f.fault = f.check(h.instruments, h.metrics, h.distributions)
		if f.fault != noFault {
			continue
		}
		if owner, ok := ids[f.id]; !ok {
			ids[f.id] = f.series
		} else if owner == f.series {
			f.fault = repeated
		} else {
			f.fault = duplicate
		}
	}
}

// checkConflicts sets the fault of each collected series whose ID another series of the set has. An
// ID belongs to the series that had it at the last reading, or that was added with it since. It
// does so as long as the first member that showed the series is in the set and still shows it: see
// live. It returns the owners that live lacks. It reads no source, because the caller holds a lock.
func (h *seriesSet[T, V]) checkConflicts(shown []newSeries, live map[seriesOwner]bool) (unread []seriesOwner) {
	for n := range shown {
		f := &shown[n]
		if f.fault != noFault {
			continue
		}
		owner, ok := h.owner(f.id)
		if !ok || owner.from.removed.Load() {
			continue
		}
		if owner.series == f.series {
			f.fault = repeated
		} else if alive, ok := live[owner]; !ok {
			unread = append(unread, owner)
		} else if alive {
			f.fault = duplicate
		}
	}
	return unread
}

// readOwners sets in live whether the owners still show their series. It reads each member once.
func (h *seriesSet[T, V]) readOwners(owners []seriesOwner, live map[seriesOwner]bool) {
	shown := map[*member]map[*stat.Series]bool{}
	for _, o := range owners {
		if shown[o.from] == nil {
			shown[o.from] = h.seriesOf(o.from)
		}
		live[o] = shown[o.from][o.series]
	}
}

// seriesOfMembers returns a copy without the series of members that are not to be inserted.
func seriesOfMembers(shown []newSeries) []newSeries {
	return slices.DeleteFunc(slices.Clone(shown), func(f newSeries) bool { return f.from.order == 0 })
}

// owner returns the series that has an ID, as far as is known.
func (h *seriesSet[T, V]) owner(id string) (seriesOwner, bool) {
	if o, ok := h.pending.find(id); ok {
		return o, true
	}
	t := h.table.Load()
	slot, ok := t.byID[id]
	if !ok {
		return seriesOwner{}, false
	}
	return t.entries[slot].seriesOwner, true
}

// seriesOf returns the series that a member shows now.
func (h *seriesSet[T, V]) seriesOf(m *member) map[*stat.Series]bool {
	series := map[*stat.Series]bool{}
	for _, f := range h.collect([]*member{m}) {
		series[f.series] = true
	}
	return series
}

func (h *seriesSet[T, V]) beginReading(yield func(T, V) bool) *reading[T, V] {
	r, ok := h.idle.Get().(*reading[T, V])
	if !ok {
		r = &reading[T, V]{}
		r.yieldSeries = h.dropInvalid(r.add)
	}
	r.start(h.table.Load(), h.members.removals.Load(), yield)
	return r
}

func (h *seriesSet[T, V]) end(r *reading[T, V]) {
	r.reset()
	h.idle.Put(r)
}

// dropInvalid returns a yield that counts invalid values and passes the others on.
func (h *seriesSet[T, V]) dropInvalid(yield func(*stat.Series, V) bool) func(*stat.Series, V) bool {
	return func(s *stat.Series, value V) bool {
		if h.valid(s, value) {
			return yield(s, value)
		}
		h.metrics.skipped[malformed].Add(1)
		return true
	}
}

func (h *seriesSet[T, V]) readMembers(r *reading[T, V], list []*member) {
	for _, m := range list {
		if m.removed.Load() || r.stopped {
			continue
		}
		r.from = m
		observeSafely(h.metrics, m.source, h.observe, r.yieldSeries)
		for _, s := range h.metrics.partsOf(m.source) {
			if !r.stopped {
				observeSafely(h.metrics, s, h.observe, r.yieldSeries)
			}
		}
	}
}

// checkNew sets the fault of each new series of the reading. It runs after all sources were read,
// so that a new series cannot take the ID of an older one, in whatever order their sources are.
func (h *seriesSet[T, V]) checkNew(r *reading[T, V], from int) {
	for n := from; n < len(r.fresh); n++ {
		f := &r.fresh[n]
		f.fault = f.check(h.instruments, h.metrics, h.distributions)
		if f.fault == noFault {
			f.fault = r.acquireID(f)
		}
	}
}
