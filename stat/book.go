package stat

import (
	"sync"
	"sync/atomic"
)

// look asks a source for what it has of one sort: figures or histograms.
type look[V any] func(s Source, yield func(*Series, V))

// histogramsOf is the look at histograms; that at figures is Source.Observe.
func histogramsOf(s Source, yield func(*Series, Histogram)) {
	if h, ok := s.(HistogramSource); ok {
		h.Histograms(yield)
	}
}

// book is what a set keeps of the series of one sort.
type book[T, V any] struct {
	distributions bool
	form          func(*Series) T
	look          look[V]
	sane          func(V) bool // or nil: all values are
	known         *dictionary
	health        *health
	own           []Source                 // of the set itself
	table         atomic.Pointer[table[T]] // never changed once it is here
	idle          sync.Pool                // of *reading[T, V]
}

// observe reads the sources and yields what there is to show.
func (b *book[T, V]) observe(sources []Source, yield func(T, V)) {
	r := b.begin(yield)
	b.read(sources, r.note)
	b.judge(r, 0)
	b.health.count(r.fresh)
	from := len(r.fresh)
	b.read(b.own, r.note)
	b.judge(r, from)
	if r.sound > 0 || r.live < len(r.table.entries) {
		b.table.Store(r.next(b.form))
	}
	b.end(r)
}

// check says what observe would leave out of more, if it were read after present.
func (b *book[T, V]) check(present, more []Source) error {
	r := b.begin(nil)
	defer b.end(r)
	b.read(present, r.note)
	b.judge(r, 0)
	from := len(r.fresh)
	b.read(more, b.sieve(r.takeAsFresh))
	b.judge(r, from)
	return explain(r.fresh[from:])
}

func (b *book[T, V]) begin(yield func(T, V)) *reading[T, V] {
	r, ok := b.idle.Get().(*reading[T, V])
	if !ok {
		r = &reading[T, V]{}
		r.note = b.sieve(r.take)
	}
	r.start(b.table.Load(), yield)
	return r
}

// sieve keeps values that are not sane from note.
func (b *book[T, V]) sieve(note func(*Series, V)) func(*Series, V) {
	if b.sane == nil {
		return note
	}
	return func(s *Series, value V) {
		if b.sane(value) {
			note(s, value)
		} else {
			b.health.skipped[malformed].Add(1)
		}
	}
}

func (b *book[T, V]) end(r *reading[T, V]) {
	r.stop()
	b.idle.Put(r)
}

func (b *book[T, V]) read(sources []Source, note func(*Series, V)) {
	for _, source := range sources {
		read(b.health, source, b.look, note)
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
