package weirhttp

import (
	"math"
	"sync"
	"time"

	"github.com/weir-go/weir/internal/instrument"
	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/stat"
)

// windows are the quotas of a Policy with a Window.
type windows[K comparable] struct {
	table  *windowTable[K]
	named  *limiter.Named // counts what the table decides
	shown  *windowSeries
	policy Policy
}

func newWindows[K comparable](p Policy, name string, maxKeys int, copied func(K) K) *windows[K] {
	return namedWindows(p, name, &windowTable[K]{
		epoch: time.Now(), terms: p.windowTerms(), maxKeys: maxKeys, overflow: p.Overflow, copied: copied, keys: map[K]*windowEntry[K]{},
	})
}

func namedWindows[K comparable](p Policy, name string, table *windowTable[K]) *windows[K] {
	return &windows[K]{
		table: table, policy: p, shown: newWindowSeries(name),
		named: limiter.NewNamed(name, turnOf[K]{table}, limiter.NamedConfig{Shadow: p.Shadow}),
	}
}

func (p Policy) windowTerms() terms { return terms{limit: int64(p.Limit), window: int64(p.Window)} }

func (w *windows[K]) take(at time.Time, key K, n int) reply {
	if n == 0 { // nothing to count
		return w.ask(at, key, 0)
	}
	t := w.table
	t.mu.Lock()
	defer t.mu.Unlock()
	t.turn = turn[K]{at: offset(at, t.epoch), key: key}
	r := w.named.Take(n)
	reply := t.turn.reply
	reply.Result = r   // in shadow mode it is OK
	t.turn = turn[K]{} // which would keep the key
	return reply
}

func (w *windows[K]) ask(at time.Time, key K, n int) reply {
	w.table.mu.Lock()
	defer w.table.mu.Unlock()
	return w.table.take(offset(at, w.table.epoch), key, n)
}

func (w *windows[K]) refund(at time.Time, key K, n int) {
	t := w.table
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.keys[key]
	switch {
	case e != nil:
		if e.refund(offset(at, t.epoch), int64(n)); len(e.spans) == 0 {
			t.remove(e) // it would use up the room of another
			delete(t.keys, key)
		}
	case t.overflow == limiter.ShareNew:
		t.shared.refund(offset(at, t.epoch), int64(n))
	}
}

func (w *windows[K]) drain(key K, n int) (room bool) {
	t := w.table
	t.mu.Lock()
	defer t.mu.Unlock()
	at := offset(time.Now(), t.epoch)
	r := t.take(at, key, n)
	if !r.OK && r.room && r.Remaining > 0 {
		r = t.take(at, key, min(n, r.Remaining))
	}
	return r.room
}

func (w *windows[K]) successor(p Policy, name string) (quotas[K], error) {
	w.table.mu.Lock()
	w.table.terms = p.windowTerms()
	w.table.mu.Unlock()
	if p.Shadow != w.policy.Shadow {
		return namedWindows(p, name, w.table), nil
	}
	return &windows[K]{table: w.table, named: w.named, shown: w.shown, policy: p}, nil
}

// Observe yields the statistics, as those of a limiter.Group.
func (w *windows[K]) Observe(yield func(*stat.Series, float64) bool) {
	for s, v := range w.named.Observe {
		if !yield(s, v) {
			return
		}
	}
	t := w.table
	t.mu.Lock()
	keys, evictions, terms := len(t.keys), t.evictions, t.terms
	t.mu.Unlock()
	_ = yield(w.shown.keys, float64(keys)) &&
		yield(w.shown.evictions, float64(evictions)) &&
		yield(w.shown.limit, float64(terms.limit)) &&
		yield(w.shown.period, time.Duration(terms.window).Seconds())
}

type windowSeries struct{ keys, evictions, limit, period *stat.Series }

func newWindowSeries(name string) *windowSeries {
	return &windowSeries{
		keys: instrument.LimiterKeys.Series(name), evictions: instrument.LimiterEvictions.Series(name),
		limit: instrument.LimiterLimit.Series(name), period: instrument.LimiterPeriod.Series(name),
	}
}

// windowTable holds the logs of all keys, in the order in which they last took something, so that the
// first one to become idle is the oldest.
type windowTable[K comparable] struct {
	epoch    time.Time
	maxKeys  int
	overflow limiter.Overflow
	copied   func(K) K // returns what is stored of a new key

	mu             sync.Mutex
	terms          terms
	keys           map[K]*windowEntry[K]
	oldest, newest *windowEntry[K]
	shared         keyLog // of all keys without room, with limiter.ShareNew
	evictions      int64
	turn           turn[K]
}

type windowEntry[K comparable] struct {
	keyLog

	key          K
	older, newer *windowEntry[K]
}

// take takes n for the key. A key that has taken nothing is not remembered.
func (t *windowTable[K]) take(at int64, key K, n int) reply {
	e := t.keys[key]
	if e == nil {
		var fresh keyLog
		if r := fresh.take(t.terms, at, n); !r.OK || n == 0 {
			return reply{Result: r, room: true}
		}
		if len(t.keys) >= t.maxKeys && !t.makeRoom(at) {
			return t.takeWithoutRoom(at, n)
		}
		e = &windowEntry[K]{key: t.copied(key)}
		t.keys[e.key] = e
		t.append(e)
	}
	r := e.take(t.terms, at, n)
	if n != 0 && r.OK {
		t.remove(e)
		t.append(e)
	}
	return reply{Result: r, next: e.next(t.terms, at), room: true}
}

// makeRoom forgets the oldest key if it is idle, and one more, so that memory is given back.
func (t *windowTable[K]) makeRoom(at int64) (made bool) {
	for range 2 {
		e := t.oldest
		if e == nil || !e.idle(t.terms, at) {
			return made
		}
		t.remove(e)
		delete(t.keys, e.key)
		t.evictions++
		made = true
	}
	return made
}

// takeWithoutRoom answers for a new key when all keys that are remembered are in use.
func (t *windowTable[K]) takeWithoutRoom(at int64, n int) reply {
	limit := int(t.terms.limit)
	switch t.overflow {
	case limiter.ShareNew:
		return reply{Result: t.shared.take(t.terms, at, n), next: t.shared.next(t.terms, at), room: true}
	case limiter.PassNew:
		return reply{Result: limiter.Result{OK: true, Limit: limit, Remaining: limit}, room: true}
	case limiter.RefuseNew:
	}
	wait := t.oldest.result(t.terms, at, 0).ResetAfter // until the first key is idle
	return reply{Result: limiter.Result{Limit: limit, RetryAfter: max(wait, 1)}}
}

func (t *windowTable[K]) remove(e *windowEntry[K]) {
	if e.older == nil {
		t.oldest = e.newer
	} else {
		e.older.newer = e.newer
	}
	if e.newer == nil {
		t.newest = e.older
	} else {
		e.newer.older = e.older
	}
}

func (t *windowTable[K]) append(e *windowEntry[K]) {
	e.older, e.newer = t.newest, nil
	if t.newest == nil {
		t.oldest = e
	} else {
		t.newest.newer = e
	}
	t.newest = e
}

// turn is whose turn it is to take from a table, and what came of it.
type turn[K comparable] struct {
	at    int64
	key   K
	reply reply
}

// turnOf is a table as a limiter.Limiter that takes for the key whose turn it is. So a limiter.Named,
// which knows no keys, counts for all of them.
type turnOf[K comparable] struct{ t *windowTable[K] }

func (o turnOf[K]) Take(n int) limiter.Result {
	if n == 0 { // a Named that is observed looks at its limiter; there is nothing to see without a key
		return limiter.Result{OK: true, Limit: math.MaxInt, Remaining: math.MaxInt}
	}
	o.t.turn.reply = o.t.take(o.t.turn.at, o.t.turn.key, n)
	return o.t.turn.reply.Result
}

func (o turnOf[K]) TakeAt(_ time.Time, n int) limiter.Result { return o.Take(n) }

func (turnOf[K]) Refund(int) {}
