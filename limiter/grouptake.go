package limiter

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/internal/clock"
)

// take takes n tokens of the key, unless callers wait for them. It does not count the request in
// the statistics.
func (g *Group[K]) take(r *Result, back *taken, at, tolerance time.Duration, key K, n int) {
	if q := g.queues.of(key); q != nil && q.waitingTokens.Load() != 0 {
		g.peek(r, at, key, 0, n)
		return
	}
	g.acquire(r, back, at, tolerance, key, n)
}

// peek fills r with the result that take would give if ahead more tokens were taken first. It takes
// nothing.
func (g *Group[K]) peek(r *Result, at time.Duration, key K, ahead int64, n int) {
	waiting := int64(0)
	if q := g.queues.of(key); q != nil {
		waiting = q.waitingTokens.Load()
	}
	g.predict(r, at, key, waiting+ahead, n)
	if waiting != 0 {
		refuseBehindWaiters(r, n)
	}
}

// acquire takes n tokens without regard to the queue. If back is not nil, it is set to what was
// taken. acquire reports whether there is room for the key.
func (g *Group[K]) acquire(r *Result, back *taken, at, tolerance time.Duration, key K, n int) (room bool) {
	var p keyPosition[K]
	g.locate(&p, key)
	p.shard.mu.Lock()
	if clock.IsNew(g.epoch, at, p.shard.latest, tolerance) {
		p.shard.mu.Unlock()
		g.restart(at)
		p.shard.mu.Lock()
	}
	p.shard.latest = max(p.shard.latest, at)
	room = g.acquireLocked(&p, r, back, at, n)
	p.shard.mu.Unlock()
	if !room {
		g.acquireWithoutRoom(r, back, at, p.tier, n)
	}
	return room
}

// predict fills in the answer that acquire would give if ahead other tokens were taken first.
func (g *Group[K]) predict(r *Result, at time.Duration, key K, ahead int64, n int) {
	var p keyPosition[K]
	g.locate(&p, key)
	p.shard.mu.Lock()
	room := g.predictLocked(&p, r, at, ahead, n)
	p.shard.mu.Unlock()
	if !room {
		g.predictWithoutRoom(r, at, p.tier, ahead, n)
	}
}

// acquireWithoutRoom decides about a request for a key that has no room in the group.
func (g *Group[K]) acquireWithoutRoom(r *Result, back *taken, at time.Duration, tier, n int) {
	if n != 0 {
		g.noRoom.Add(1)
	}
	switch {
	case !g.shareNew:
		g.predictWithoutRoom(r, at, tier, 0, n)
	case back != nil:
		shared := g.shared[tier]
		*r, *back = shared.tryTake(g.epoch.Add(at), n, nothing)
		back.shared = shared
	default:
		*r = g.shared[tier].takeAt(at, n)
	}
	r.NoRoom = true
}

func (g *Group[K]) predictWithoutRoom(r *Result, at time.Duration, tier int, ahead int64, n int) {
	if g.shareNew {
		*r = g.shared[tier].peekAt(at, ahead, n)
	} else {
		l := g.tiers[tier].Load()
		at = l.clamp(at)
		*r = Result{Limit: l.burst, RetryAfter: l.until(l.units(at)+l.cost, at)}
	}
	r.NoRoom = true
}

// hasRoom reports whether there is room for the key, and returns its tier.
func (g *Group[K]) hasRoom(key K, n int) (tier int, room bool) {
	var p keyPosition[K]
	g.locate(&p, key)
	p.shard.mu.Lock()
	defer p.shard.mu.Unlock()
	var r Result
	return p.tier, g.predictLocked(&p, &r, time.Since(g.epoch), 0, n)
}

// putBack gives tokens back to where they were taken. A key that the group has evicted since had
// all of its tokens again.
func (g *Group[K]) putBack(now time.Time, key K, back taken, n int) taken {
	if back.shared != nil {
		return back.shared.putBack(now, back, n)
	}
	var p keyPosition[K]
	g.locate(&p, key)
	p.shard.mu.Lock()
	t := p.tierTable()
	if full := p.bucket(t.buckets.Find(p.hash, key)); full != nil && back.at >= t.noRefundBefore {
		units := t.limits.returnable(back, n, t.refunded, now.Sub(g.epoch))
		*full = max(*full-units, alwaysFull)
		t.refunded += units
		back.end -= units
		back.refunded += units
	}
	back.use(n)
	p.shard.mu.Unlock()
	if q := g.queues.of(key); q != nil {
		q.wakeFirst()
	}
	return back
}

// charge takes n tokens of the key, even if it does not have them. A key must be remembered, beyond
// MaxKeys if need be, if its debt must not be forgotten. Otherwise charge reports whether there is
// room for it.
func (g *Group[K]) charge(at time.Duration, key K, n int, must bool) (room bool) {
	var p keyPosition[K]
	g.locate(&p, key)
	p.shard.mu.Lock()
	defer p.shard.mu.Unlock()
	t, h := p.tierTable(), noHold
	p.shard.latest = max(p.shard.latest, at)
	if t.limits.counted == 0 {
		return true
	}
	if p.shard.held {
		h = g.holdOf(&p, at)
	}
	s, known := t.buckets.Place(p.hash, key, t.limits.idle(at))
	if !known {
		must = must && key == key //nolint:gocritic // a NaN would never be found again
		if s = g.addKey(&p, s, at, must); s != nil {
			s.Until = max(s.Until, p.fullAfterHold())
		}
	}
	full := p.bucket(s)
	if full == nil {
		return false
	}
	*full = t.limits.charged(*full, h, at, n)
	return true
}

// keyQueues holds the wait queues of a Group: one for each key that a caller waits for.
type keyQueues[K comparable] struct {
	count atomic.Int64 // of queues, so that no lock is taken while no caller waits

	mu    sync.Mutex
	byKey map[K]*keyQueue
}

// keyQueue is the wait queue of one key.
type keyQueue struct {
	waitQueue
	users int // guarded by the lock of keyQueues
}

// of returns the queue of a key, or nil if there is none.
func (q *keyQueues[K]) of(key K) *keyQueue {
	if q.count.Load() == 0 {
		return nil
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.byKey[key]
}

// acquire returns the queue of a key, which it creates if necessary. The caller releases it.
func (q *keyQueues[K]) acquire(key K, g *Group[K]) *keyQueue {
	q.mu.Lock()
	defer q.mu.Unlock()
	queue := q.byKey[key]
	if queue == nil {
		queue = &keyQueue{}
		queue.maxWaiters = g.maxWaiters
		queue.keepStatistics(g.statistics)
		if q.byKey == nil {
			q.byKey = map[K]*keyQueue{}
		}
		q.byKey[key] = queue
		q.count.Add(1)
	}
	queue.users++
	return queue
}

func (q *keyQueues[K]) release(key K, queue *keyQueue) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if queue.users--; queue.users == 0 {
		delete(q.byKey, key)
		q.count.Add(-1)
	}
}

// wakeAll makes the first waiter of every key try again.
func (q *keyQueues[K]) wakeAll() {
	if q.count.Load() == 0 {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, queue := range q.byKey {
		queue.wakeFirst()
	}
}

func (g *Group[K]) wait(ctx context.Context, key K, n int, maxWait time.Duration, w *waiter) (t taken, err error) {
	source := keySource[K]{g, key}
	switch tier, room := g.hasRoom(key, n); {
	case !room && g.shareNew:
		g.noRoom.Add(1)
		t, err = g.shared[tier].waitTaken(ctx, n, maxWait, w)
		t.shared = g.shared[tier]
		return t, g.withMaxKeys(err)
	case !room, key != key: //nolint:gocritic // the queue of a NaN would never be found again
		// is decided at once
		if w != nil {
			w.gate.refused = Result{}
		}
		t, err = (&waitQueue{statistics: g.statistics}).wait(ctx, source, n, maxWait, w)
		return t, g.withMaxKeys(err)
	}
	q := g.queues.acquire(key, g)
	defer g.queues.release(key, q)
	return q.wait(ctx, source, n, maxWait, w)
}

// withMaxKeys puts MaxKeys into the error of a request for whose key there was no room.
func (g *Group[K]) withMaxKeys(err error) error {
	if limited, ok := errors.AsType[*LimitedError](err); ok {
		limited.MaxKeys = int(g.maxKeys)
	}
	return err
}

// keySource is the tokenSource of one key.
type keySource[K comparable] struct {
	group *Group[K]
	key   K
}

// acquire does not let the caller wait for a key without room. A key may lose its room during a
// wait, because it can be evicted when it is idle, even while it is held.
func (s keySource[K]) acquire(n int) (r Result, back taken) {
	if !s.group.acquire(&r, &back, time.Since(s.group.epoch), clock.ReadTolerance, s.key, n) && !s.group.shareNew {
		r.ResetAfter = noWait
	}
	return r, back
}

func (s keySource[K]) predict(ahead int64, n int) (r Result) {
	s.group.predict(&r, time.Since(s.group.epoch), s.key, ahead, n)
	return r
}
