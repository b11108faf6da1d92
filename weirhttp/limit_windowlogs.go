package weirhttp

import (
	"math"
	"sync"
	"time"

	"github.com/weir-go/weir/limiter"
)

// windowLogs holds the logs of all keys of a policy in a list, in the order in which the keys last
// took something. So the oldest key in the list becomes idle first. The callers of all methods must
// hold the lock.
type windowLogs struct {
	maxKeys  int
	overflow limiter.Overflow

	mu             sync.Mutex
	epoch          time.Time
	latest         int64 // the result of the last call of now
	limit          windowLimit
	byKey          map[quotaKey]*keyLog
	oldest, newest *keyLog
	shared         windowLog // of all keys without room, for limiter.ShareNew
	evictions      int64
	noRoom         int64 // requests of keys without room
}

// keyLog is the log of a key, and an element of the list.
type keyLog struct {
	windowLog

	key          quotaKey
	older, newer *keyLog
}

func newWindowLogs(p Policy, maxKeys int) *windowLogs {
	return &windowLogs{
		epoch: time.Now(), limit: p.windowLimit(), maxKeys: maxKeys, overflow: p.overflow(), byKey: map[quotaKey]*keyLog{},
	}
}

func (p Policy) windowLimit() windowLimit {
	return windowLimit{limit: int64(p.Limit), window: int64(p.Window)}
}

// now returns the time since the epoch. It reads the clock with the lock held. So if the time is
// earlier than before, it is another clock, such as that of a new testing/synctest bubble, and all
// quotas are full.
func (t *windowLogs) now() int64 {
	// bounded so that sums with a window do not overflow
	at := min(int64(time.Since(t.epoch)), math.MaxInt64/4)
	if at < t.latest {
		t.forgetAll()
		t.epoch, at = time.Now(), 0
	}
	t.latest = at
	return at
}

// take takes n for the key. A key that has taken nothing is not stored.
func (t *windowLogs) take(at int64, key quotaKey, n int) reply {
	e := t.byKey[key]
	if e == nil {
		if r := t.peek(at, key, n); !r.OK || n == 0 || !r.room {
			return r
		}
		if len(t.byKey) >= t.maxKeys && !t.evictIdle(at) {
			return t.takeWithoutRoom(at, n)
		}
		e = &keyLog{key: key.clone()}
		t.byKey[e.key] = e
		t.append(e)
	}
	r := e.take(t.limit, at, n)
	if n != 0 && r.OK {
		t.unlink(e)
		t.append(e)
	}
	return reply{Result: r, next: e.untilNext(t.limit, at), room: true, taken: taken{offset: at}}
}

// peek returns what take would return, and takes nothing.
func (t *windowLogs) peek(at int64, key quotaKey, n int) reply {
	if e := t.byKey[key]; e != nil {
		return reply{Result: e.peek(t.limit, at, n), next: e.untilNext(t.limit, at), room: true}
	}
	var none windowLog
	r := none.peek(t.limit, at, n)
	if r.OK && n > 0 && len(t.byKey) >= t.maxKeys && !t.oldest.isIdle(t.limit, at) {
		return t.lookWithoutRoom(at, n)
	}
	return reply{Result: r, room: true}
}

// takeWithoutRoom does the work of take for a new key while all keys are in use.
func (t *windowLogs) takeWithoutRoom(at int64, n int) (r reply) {
	if t.overflow != limiter.ShareNew {
		return t.lookWithoutRoom(at, n)
	}
	r = reply{Result: t.shared.take(t.limit, at, n), next: t.shared.untilNext(t.limit, at), room: true, taken: taken{offset: at}}
	r.NoRoom = true
	return r
}

func (t *windowLogs) lookWithoutRoom(at int64, n int) (r reply) {
	limit := int(t.limit.limit)
	switch t.overflow {
	case limiter.ShareNew:
		r = reply{Result: t.shared.peek(t.limit, at, n), next: t.shared.untilNext(t.limit, at), room: true}
	case limiter.PassNew:
		r = reply{Result: limiter.Result{OK: true, Limit: limit, Remaining: limit}, room: true}
	case limiter.RefuseNew:
		wait := t.oldest.result(t.limit, at, 0).ResetAfter // until the oldest key is idle
		r = reply{Result: limiter.Result{Limit: limit, RetryAfter: max(wait, 1)}}
	}
	r.NoRoom = true
	return r
}

// refund gives back n that the key took at the time. An empty log is deleted, so that its place is
// free.
func (t *windowLogs) refund(at int64, key quotaKey, n int64) {
	e := t.byKey[key]
	switch {
	case e != nil:
		if e.refund(at, n); len(e.spans) == 0 {
			t.unlink(e)
			delete(t.byKey, key)
		}
	case t.overflow == limiter.ShareNew:
		t.shared.refund(at, n)
	}
}

// forget deletes the log of a key, and reports whether there was one.
func (t *windowLogs) forget(key quotaKey) bool {
	e := t.byKey[key]
	if e != nil {
		t.unlink(e)
		delete(t.byKey, key)
	}
	return e != nil
}

func (t *windowLogs) forgetAll() {
	clear(t.byKey)
	t.oldest, t.newest, t.shared = nil, nil, windowLog{}
}

// evictIdle evicts the two oldest keys that are idle: two, so that the table shrinks when fewer
// keys are in use. It reports whether it evicted a key.
func (t *windowLogs) evictIdle(at int64) (evicted bool) {
	for range 2 {
		e := t.oldest
		if e == nil || !e.isIdle(t.limit, at) {
			return evicted
		}
		t.unlink(e)
		delete(t.byKey, e.key)
		t.evictions++
		evicted = true
	}
	return evicted
}

func (t *windowLogs) unlink(e *keyLog) {
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

func (t *windowLogs) append(e *keyLog) {
	e.older, e.newer = t.newest, nil
	if t.newest == nil {
		t.oldest = e
	} else {
		t.newest.newer = e
	}
	t.newest = e
}
