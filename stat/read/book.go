package read

import (
	"sync"
	"sync/atomic"

	"github.com/weir-go/weir/stat"
)

// look asks a source for what it has of one sort: figures or histograms.
type look[V any] func(s stat.Source, yield func(*stat.Series, V) bool)

// histogramsOf is the look at histograms; that at figures is Source.Observe.
func histogramsOf(s stat.Source, yield func(*stat.Series, stat.Histogram) bool) {
	if h, ok := s.(stat.HistogramSource); ok {
		h.Histograms(yield)
	}
}

// book is what a set keeps of the series of one sort.
type book[T, V any] struct {
	distributions bool
	form          func(*stat.Series) T
	look          look[V]
	sane          func(V) bool // or nil: all values are
	known         *dictionary
	health        *health
	members       *members
	own           []*member                // of the set itself
	table         atomic.Pointer[table[T]] // never changed once it is here
	claims        *claims                  // of what came after the table
	idle          sync.Pool                // of *reading[T, V]
}

// observe reads the sources and yields what there is to show. A reading that yield has
// stopped has not seen all series, so the table stays as it was.
func (b *book[T, V]) observe(yield func(T, V) bool) {
	r := b.begin(yield)
	defer b.end(r)
	list := *b.members.list.Load()
	b.read(r, list)
	if r.stopped {
		return
	}
	b.judge(r, 0)
	b.health.count(r.fresh)
	from := len(r.fresh)
	b.read(r, b.own)
	b.judge(r, from)
	if r.stopped {
		return
	}
	next := r.table
	if r.sound > 0 || r.live < len(r.table.entries) || len(r.moved) > 0 {
		next = r.next(b.form)
	}
	// A reading that was overtaken by another may lack what that one has settled.
	if b.table.CompareAndSwap(r.table, next) && len(list) > 0 {
		b.claims.settle(list[len(list)-1].order)
	}
}

// meet reads members that are to come, and says what is wrong with what they show.
func (b *book[T, V]) meet(list []*member) (shown []fresh) {
	var from *member
	note := b.sieve(func(s *stat.Series, _ V) bool {
		shown = append(shown, fresh{series: s, from: from})
		return true
	})
	for _, from = range list {
		readSource(b.health, from.source, b.look, note)
	}
	return shown
}

// examine finds the fault, or none, of each series that was met, among themselves.
func (b *book[T, V]) examine(shown []fresh) {
	ids := make(map[string]*stat.Series, len(shown))
	for n := range shown {
		f := &shown[n]
		f.fault = f.examine(b.known, b.health, b.distributions)
		if f.fault != sound {
			continue
		}
		if owner, ok := ids[f.id]; !ok {
			ids[f.id] = f.series
		} else if owner == f.series {
			f.fault = again
		} else {
			f.fault = duplicate
		}
	}
}

// dispute finds those of the series that were met whose IDs others have. An ID belongs to
// the series that had it at the last reading, or has been added since, for as long as
// the first member that showed it is there and does: such members are read anew.
func (b *book[T, V]) dispute(shown []fresh) {
	live := map[*member]map[*stat.Series]bool{}
	for n := range shown {
		f := &shown[n]
		if f.fault != sound {
			continue
		}
		owner, ok := b.owner(f.id)
		if !ok || owner.from.gone.Load() {
			continue
		}
		if owner.series == f.series {
			f.fault = again
			continue
		}
		if live[owner.from] == nil {
			live[owner.from] = b.shown(owner.from)
		}
		if live[owner.from][owner.series] {
			f.fault = duplicate
		}
	}
}

func (b *book[T, V]) owner(id string) (claim, bool) {
	if c, ok := b.claims.find(id); ok {
		return c, true
	}
	t := b.table.Load()
	slot, ok := t.owners[id]
	if !ok {
		return claim{}, false
	}
	return t.entries[slot].claim, true
}

// shown has what a member shows now.
func (b *book[T, V]) shown(m *member) map[*stat.Series]bool {
	series := map[*stat.Series]bool{}
	for _, f := range b.meet([]*member{m}) {
		series[f.series] = true
	}
	return series
}

func (b *book[T, V]) begin(yield func(T, V) bool) *reading[T, V] {
	r, ok := b.idle.Get().(*reading[T, V])
	if !ok {
		r = &reading[T, V]{}
		r.note = b.sieve(r.take)
	}
	r.start(b.table.Load(), b.members.removed.Load(), yield)
	return r
}

// sieve keeps values that are not sane from note.
func (b *book[T, V]) sieve(note func(*stat.Series, V) bool) func(*stat.Series, V) bool {
	if b.sane == nil {
		return note
	}
	return func(s *stat.Series, value V) bool {
		if b.sane(value) {
			return note(s, value)
		}
		b.health.skipped[malformed].Add(1)
		return true
	}
}

func (b *book[T, V]) end(r *reading[T, V]) {
	r.stop()
	b.idle.Put(r)
}

func (b *book[T, V]) read(r *reading[T, V], list []*member) {
	for _, m := range list {
		if !m.gone.Load() && !r.stopped {
			r.from = m
			readSource(b.health, m.source, b.look, r.note)
		}
	}
}

// judge finds the fault, or none, of each fresh series of the reading. It runs
// after all sources were read: a newcomer must not take the ID of a series that
// was there before it, in whatever order their sources stand.
func (b *book[T, V]) judge(r *reading[T, V], from int) {
	for n := from; n < len(r.fresh); n++ {
		f := &r.fresh[n]
		f.fault = f.examine(b.known, b.health, b.distributions)
		if f.fault == sound {
			f.fault = r.claim(f)
		}
	}
}
