package weirhttp

import (
	"hash/maphash"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/weir-go/weir/internal/busy"
	"github.com/weir-go/weir/internal/friend"
	"github.com/weir-go/weir/internal/instrument"
	"github.com/weir-go/weir/internal/keyed"
	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/stat"
)

// windowTable is the table of a Policy with a Window.
type windowTable struct {
	logs     *windowLogs
	requests *limiter.Requests
	refusals *busy.Sketch[quotaKey]
	series   *windowSeries
	policy   Policy
}

func newWindowTable(p Policy, name string, maxKeys int) *windowTable {
	return namedWindowTable(p, name, newWindowLogs(p, maxKeys), busy.New[quotaKey](p.ShowKeys))
}

func namedWindowTable(p Policy, name string, logs *windowLogs, refusals *busy.Sketch[quotaKey]) *windowTable {
	w := &windowTable{logs: logs, refusals: refusals, policy: p, series: newWindowSeries(name), requests: new(limiter.Requests)}
	limiters.InitRequests(w.requests, name, time.Now())
	return w
}

func (w *windowTable) take(_ time.Time, key quotaKey, n int) reply {
	if n == 0 { // there is nothing to count
		return w.peek(time.Time{}, key, 0)
	}
	w.logs.mu.Lock()
	defer w.logs.mu.Unlock()
	reply := w.logs.take(w.logs.now(), key, n)
	if !reply.OK {
		w.refusals.Add(key)
	}
	if reply.NoRoom {
		w.logs.noRoom++
	}
	if w.policy.Shadow && !reply.OK {
		limiters.CountTokens(w.requests, instrument.Shadowed, n)
		reply.OK = true
	} else {
		w.requests.Record(reply.Result, n)
	}
	return reply
}

func (w *windowTable) peek(_ time.Time, key quotaKey, n int) reply {
	w.logs.mu.Lock()
	defer w.logs.mu.Unlock()
	return w.logs.peek(w.logs.now(), key, n)
}

func (w *windowTable) refund(taken taken, key quotaKey, n int) {
	w.logs.mu.Lock()
	defer w.logs.mu.Unlock()
	w.logs.refund(taken, key, int64(n))
}

func (w *windowTable) charge(key quotaKey, n int) (own bool) {
	w.logs.mu.Lock()
	defer w.logs.mu.Unlock()
	return w.logs.charge(w.logs.now(), key, int64(n))
}

func (w *windowTable) drain(key quotaKey, n int) (room bool) {
	w.logs.mu.Lock()
	defer w.logs.mu.Unlock()
	at := w.logs.now()
	r := w.logs.take(at, key, n)
	// twice for a new key, whose first answer is that of a quota of its own
	for !r.OK && r.room && r.Remaining > 0 {
		r = w.logs.take(at, key, min(n, r.Remaining))
	}
	return r.room
}

// Forget implements keyTable.
func (w *windowTable) Forget(key quotaKey) bool {
	w.logs.mu.Lock()
	defer w.logs.mu.Unlock()
	return w.logs.forget(key)
}

func (w *windowTable) forgetAll() {
	w.logs.mu.Lock()
	defer w.logs.mu.Unlock()
	w.logs.forgetAll()
}

func (w *windowTable) successor(p Policy, name string) (keyTable, error) {
	w.logs.mu.Lock()
	w.logs.limit = p.windowLimit()
	w.logs.mu.Unlock()
	w.refusals.Show(p.ShowKeys)
	if p.Shadow != w.policy.Shadow {
		return namedWindowTable(p, name, w.logs, w.refusals), nil
	}
	next := *w
	next.policy = p
	return &next, nil
}

// Observe yields the statistics, with the same series as those of a limiter.Group.
func (w *windowTable) Observe(yield func(*stat.Series, float64) bool) {
	if !limiters.Observe(w.requests, limiters.ObservedTokens(w.policy.Shadow), yield) {
		return
	}
	w.logs.mu.Lock()
	keys, evictions, noRoom, c := w.logs.keys.Len(), w.logs.evictions, w.logs.noRoom, w.logs.limit
	w.logs.mu.Unlock()
	_ = yield(w.series.keys, float64(keys)) &&
		yield(w.series.evictions, float64(evictions)) &&
		yield(w.series.noRoom, float64(noRoom)) &&
		yield(w.series.limit, float64(c.limit)) &&
		yield(w.series.period, time.Duration(c.window).Seconds())
}

type windowSeries struct{ keys, evictions, noRoom, limit, period *stat.Series }

func newWindowSeries(name string) *windowSeries {
	return &windowSeries{
		keys: instrument.LimiterKeys.Series(name), evictions: instrument.LimiterEvictions.Series(name), noRoom: instrument.LimiterNoRoom.Series(name),
		limit: instrument.LimiterLimit.Series(name), period: instrument.LimiterPeriod.Series(name),
	}
}

// windowLogs holds the logs of all keys of a policy. A key is in use as long as anything counts in
// its log. The callers of all methods must hold the lock.
type windowLogs struct {
	maxKeys  int
	shareNew bool
	seed     maphash.Seed

	mu        sync.Mutex
	epoch     time.Time
	latest    int64 // the result of the last call of now
	limit     windowLimit
	keys      keyed.Map[quotaKey, windowLog]
	shared    windowLog // of all keys without room, if shareNew
	evictions int64
	noRoom    int64 // requests of keys without room
}

func newWindowLogs(p Policy, maxKeys int) *windowLogs {
	return &windowLogs{epoch: time.Now(), limit: p.windowLimit(), maxKeys: maxKeys, shareNew: p.ShareNew, seed: maphash.MakeSeed()}
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

func (t *windowLogs) find(key quotaKey) *keyed.Slot[quotaKey, windowLog] {
	return t.keys.Find(maphash.Comparable(t.seed, key), key)
}

// take takes n for the key. A key that has taken nothing is not stored.
func (t *windowLogs) take(at int64, key quotaKey, n int) reply {
	hash := maphash.Comparable(t.seed, key)
	s, known := t.keys.Place(hash, key, at)
	if !known {
		if r := t.limit.untouched(at, n); !r.OK || n == 0 {
			return r
		}
		if s = t.add(s, hash, key, at); s == nil {
			return t.takeWithoutRoom(at, n)
		}
	}
	r := s.Value.take(t.limit, at, n)
	s.Until = at + int64(r.ResetAfter) - 1
	return reply{Result: r, next: s.Value.untilNext(t.limit, at), room: true, taken: taken{offset: at}}
}

// charge takes n for the key, also beyond the limit, and reports whether there is room for the key.
func (t *windowLogs) charge(at int64, key quotaKey, n int64) (room bool) {
	hash := maphash.Comparable(t.seed, key)
	s, known := t.keys.Place(hash, key, at)
	if !known {
		if s = t.add(s, hash, key, at); s == nil {
			return false
		}
	}
	s.Value.charge(t.limit, at, n)
	s.Until = at + t.limit.window - 1
	return true
}

// add adds a new key, in the slot that Place returned if possible. It returns nil if there is no
// room.
func (t *windowLogs) add(s *keyed.Slot[quotaKey, windowLog], hash uint64, key quotaKey, at int64) *keyed.Slot[quotaKey, windowLog] {
	if !t.makeRoom(s, at) {
		return nil
	}
	s, evicted := t.keys.Add(s, hash, key.Clone(friend.Key{}), at)
	t.evictions += int64(evicted)
	return s
}

// untouched returns the reply to a key that has taken nothing.
func (c windowLimit) untouched(at int64, n int) reply {
	var none windowLog
	return reply{Result: none.peek(c, at, n), room: true}
}

// peek returns what take would return, and takes nothing.
func (t *windowLogs) peek(at int64, key quotaKey, n int) reply {
	s, known := t.keys.Place(maphash.Comparable(t.seed, key), key, at)
	if known {
		return reply{Result: s.Value.peek(t.limit, at, n), next: s.Value.untilNext(t.limit, at), room: true}
	}
	r := t.limit.untouched(at, n)
	if r.OK && n > 0 && !t.makeRoom(s, at) {
		return t.lookWithoutRoom(at, n)
	}
	return r
}

// scanLength is how many slots are searched for idle keys when there is no room.
const scanLength = 16

// makeRoom reports whether there is room for a new key in the slot. If necessary, it evicts idle
// keys, unless the slot has one that the new key can replace.
func (t *windowLogs) makeRoom(s *keyed.Slot[quotaKey, windowLog], at int64) bool {
	if s.HasKey() || t.keys.Len() < t.maxKeys {
		return true
	}
	evicted := t.keys.Evict(scanLength, at)
	t.evictions += int64(evicted)
	return evicted > 0
}

// takeWithoutRoom does the work of take for a new key while all keys are in use.
func (t *windowLogs) takeWithoutRoom(at int64, n int) (r reply) {
	if !t.shareNew {
		return t.lookWithoutRoom(at, n)
	}
	r = reply{Result: t.shared.take(t.limit, at, n), next: t.shared.untilNext(t.limit, at), room: true, taken: taken{offset: at, shared: true}}
	r.NoRoom = true
	return r
}

func (t *windowLogs) lookWithoutRoom(at int64, n int) (r reply) {
	if t.shareNew {
		r = reply{Result: t.shared.peek(t.limit, at, n), next: t.shared.untilNext(t.limit, at), room: true}
	} else {
		r = reply{Result: limiter.Result{Limit: int(t.limit.limit), RetryAfter: t.untilIdle(at)}}
	}
	r.NoRoom = true
	return r
}

// untilIdle returns an estimate of the time until a key is idle: until the first of the next keys
// is.
func (t *windowLogs) untilIdle(at int64) time.Duration {
	first := at + t.limit.window
	for s := range t.keys.Next(scanLength) {
		first = min(first, s.Until+1)
	}
	return time.Duration(max(first-at, 1))
}

// refund gives back n that the key took. An empty log is deleted, so that its place is free.
func (t *windowLogs) refund(taken taken, key quotaKey, n int64) {
	if taken.shared {
		t.shared.refund(taken.offset, n)
		return
	}
	s := t.find(key)
	if s == nil {
		return
	}
	s.Value.refund(taken.offset, n)
	if last := len(s.Value.spans) - 1; last >= 0 {
		s.Until = s.Value.spans[last].last + t.limit.window - 1
	} else {
		t.keys.Remove(s)
	}
}

// forget deletes the log of a key, and reports whether there was one.
func (t *windowLogs) forget(key quotaKey) bool {
	s := t.find(key)
	if s != nil {
		t.keys.Remove(s)
	}
	return s != nil
}

func (t *windowLogs) forgetAll() { t.keys, t.shared = keyed.Map[quotaKey, windowLog]{}, windowLog{} }

// windowLog remembers what one key has taken in a window, as spans of time. Times are nanoseconds,
// and no method gets an earlier time than was given before.
type windowLog struct {
	spans []span // the oldest first
	used  int64  // the sum over all spans
}

// span is the number of requests from first to last. All n requests count until last is a window
// ago. So a request counts too long, but by at most last - first.
type span struct{ first, last, n int64 }

// spansPerWindow is the least number of spans that a full window is divided into.
const spansPerWindow = 16

// windowLimit is the Limit and Window of a Policy.
type windowLimit struct{ limit, window int64 }

// spanWidth returns how long a span may be. Up to spansPerWindow requests have a span each.
func (c windowLimit) spanWidth() int64 {
	if c.limit <= spansPerWindow {
		return 0
	}
	return c.window / spansPerWindow
}

// take takes n at the time, all or none.
func (l *windowLog) take(c windowLimit, at int64, n int) limiter.Result {
	l.expire(c, at)
	if n > 0 && int64(n) <= c.limit-l.used {
		l.add(c, at, int64(n))
		return l.result(c, at, 0)
	}
	return l.result(c, at, n)
}

// peek returns whether take would succeed, and takes nothing.
func (l *windowLog) peek(c windowLimit, at int64, n int) limiter.Result {
	l.expire(c, at)
	if n > 0 && int64(n) <= c.limit-l.used {
		n = 0
	}
	return l.result(c, at, n)
}

// expire drops the spans that no longer count.
func (l *windowLog) expire(c windowLimit, at int64) {
	gone := 0
	for gone < len(l.spans) && at-l.spans[gone].last >= c.window {
		l.used -= l.spans[gone].n
		gone++
	}
	l.spans = l.spans[:copy(l.spans, l.spans[gone:])]
}

// charge takes n at the time, also beyond the limit.
func (l *windowLog) charge(c windowLimit, at, n int64) {
	l.expire(c, at)
	l.add(c, at, min(n, math.MaxInt64/2-l.used))
}

func (l *windowLog) add(c windowLimit, at, n int64) {
	l.used += n
	if i := len(l.spans) - 1; i >= 0 && at-l.spans[i].first <= c.spanWidth() {
		l.spans[i].last, l.spans[i].n = at, l.spans[i].n+n
		return
	}
	l.spans = append(l.spans, span{first: at, last: at, n: n})
}

// refund gives back n that were taken at the time. If no span has that time, they do not count any
// more.
func (l *windowLog) refund(at, n int64) {
	for i := range l.spans {
		if s := &l.spans[i]; s.first <= at && at <= s.last {
			n = min(n, s.n)
			s.n -= n
			l.used -= n
			if s.n == 0 {
				l.spans = slices.Delete(l.spans, i, i+1)
			}
			return
		}
	}
}

// result returns the state of the log for a refused request for n, or for an allowed one if n is 0.
func (l *windowLog) result(c windowLimit, at int64, n int) limiter.Result {
	r := limiter.Result{OK: n == 0, Limit: int(c.limit), Remaining: int(max(c.limit-l.used, 0))}
	if last := len(l.spans) - 1; last >= 0 {
		r.ResetAfter = time.Duration(l.spans[last].last + c.window - at)
	}
	switch {
	case n == 0:
	case n < 0 || int64(n) > c.limit:
		r.RetryAfter = limiter.Never
	default:
		r.RetryAfter = l.untilExpired(c, at, l.used+int64(n)-c.limit)
	}
	return r
}

// untilExpired returns the time until n have expired, at least 1ns.
func (l *windowLog) untilExpired(c windowLimit, at, n int64) time.Duration {
	for _, s := range l.spans {
		if n -= s.n; n <= 0 {
			return time.Duration(max(s.last+c.window-at, 1))
		}
	}
	return 1
}

// untilNext returns the time until one more request can be made than now, 0 if all can. More than
// one span has to expire for it if the limit was lowered below what has been taken.
func (l *windowLog) untilNext(c windowLimit, at int64) time.Duration {
	if len(l.spans) == 0 {
		return 0
	}
	return l.untilExpired(c, at, max(l.used+1-c.limit, 1))
}
