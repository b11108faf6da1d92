package limiter

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// lines are the queues of a Group: one for each key that somebody waits for.
type lines[K comparable] struct {
	waiting atomic.Int64 // how many there are, so that where nobody waits nobody takes the lock

	mu    sync.Mutex
	byKey map[K]*line
}

// line is the queue of one key.
type line struct {
	queue
	users int // guarded by the lock of the lines
}

// of returns the queue of a key, nil where nobody waits.
func (l *lines[K]) of(key K) *line {
	if l.waiting.Load() == 0 {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.byKey[key]
}

// enter returns the queue of a key for somebody who is to leave it.
func (l *lines[K]) enter(key K, most int) *line {
	l.mu.Lock()
	defer l.mu.Unlock()
	q := l.byKey[key]
	if q == nil {
		q = &line{}
		q.max = most
		if l.byKey == nil {
			l.byKey = map[K]*line{}
		}
		l.byKey[key] = q
		l.waiting.Add(1)
	}
	q.users++
	return q
}

func (l *lines[K]) leave(key K, q *line) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if q.users--; q.users == 0 {
		delete(l.byKey, key)
		l.waiting.Add(-1)
	}
}

// pokeAll makes whoever is next for any key look again.
func (l *lines[K]) pokeAll() {
	if l.waiting.Load() == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, q := range l.byKey {
		q.poke()
	}
}

// Wait takes n tokens of the key as soon as there are that many, and returns nil then: see [TokenBucket.Wait]. Each key has
// a queue of its own.
func (g *Group[K]) Wait(ctx context.Context, key K, n int) error {
	return g.WaitAtMost(ctx, key, n, Never)
}

// WaitAtMost is Wait that gives up at once, with a *LimitedError, where it would take longer than maxWait. For a key for which
// there is no room nobody waits, as it is not known when there will be; but where such keys share a bucket, they wait for that.
func (g *Group[K]) WaitAtMost(ctx context.Context, key K, n int, maxWait time.Duration) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if g.statistics == nil {
		return g.waitAtMost(ctx, key, n, maxWait)
	}
	var r Result
	g.take(&r, time.Since(g.epoch), key, n)
	if r.OK || g.shadows() {
		g.count(&r, n)
	}
	if r.OK || peeked(r, n) {
		return nil
	}
	return g.await(n, func() error { return g.waitAtMost(ctx, key, n, maxWait) })
}

// waitAtMost counts nothing.
func (g *Group[K]) waitAtMost(ctx context.Context, key K, n int, maxWait time.Duration) error {
	if tier, room := g.hasRoom(key, n); !room {
		if g.overflow == ShareNew {
			return g.spare[tier].WaitAtMost(ctx, n, maxWait)
		}
		var r Result
		if g.lookNew(&r, time.Since(g.epoch), tier, 0, n); !r.OK {
			return refused(r, n)
		}
		return nil
	}
	if key != key { //nolint:gocritic // a NaN is not, and its queue would never be found again
		var r Result
		if g.serve(&r, time.Since(g.epoch), key, n); r.OK || peeked(r, n) {
			return nil
		}
		return refused(r, n)
	}
	q := g.lines.enter(key, g.maxWaiters)
	defer g.lines.leave(key, q)
	return q.wait(ctx, keyServer[K]{g, key}, request{n: n, limit: maxWait})
}

// hasRoom reports whether a request for n tokens of the key finds room for it.
func (g *Group[K]) hasRoom(key K, n int) (tier int, room bool) {
	var p place[K]
	g.place(&p, key)
	p.shard.mu.Lock()
	defer p.shard.mu.Unlock()
	var r Result
	return p.tier, g.lookAt(&p, &r, time.Since(g.epoch), 0, n)
}

// keyServer is one key of a group as its queue sees it.
type keyServer[K comparable] struct {
	group *Group[K]
	key   K
}

func (s keyServer[K]) now() time.Duration { return time.Since(s.group.epoch) }

// serve tells a caller to leave whose key has lost its room, as an idle one may while it is held.
func (s keyServer[K]) serve(r *Result, at time.Duration, n int) {
	if !s.group.serve(r, at, s.key, n) && s.group.overflow == RefuseNew {
		r.ResetAfter = useless
	}
}

func (s keyServer[K]) after(r *Result, at time.Duration, ahead int64, n int) {
	s.group.after(r, at, s.key, ahead, n)
}

// Keyed is the limit of one key of a [Group], as a [Limiter] and a [WaitLimiter]. It is a small value without state of its
// own: all values of one key are the same limiter.
type Keyed[K comparable] struct {
	group *Group[K]
	key   K
}

// Get returns the limiter of the key.
func (g *Group[K]) Get(key K) Keyed[K] { return Keyed[K]{group: g, key: key} }

// Take takes n tokens of the key, all or none.
func (k Keyed[K]) Take(n int) Result { return k.group.Take(k.key, n) }

// TakeAt is Take at a given time.
func (k Keyed[K]) TakeAt(t time.Time, n int) Result { return k.group.TakeAt(t, k.key, n) }

// Refund gives n tokens back to the key, as if they had never been taken.
func (k Keyed[K]) Refund(n int) { k.group.Refund(k.key, n) }

// Hold admits nothing for d: see [TokenBucket.Hold].
func (k Keyed[K]) Hold(d time.Duration) { k.group.Hold(k.key, d) }

func (k Keyed[K]) peek(r *Result, t time.Time, ahead int64, n int) {
	k.group.look(r, t.Sub(k.group.epoch), k.key, ahead, n)
}

func (k Keyed[K]) attempt(t time.Time, n int) (r Result) {
	k.group.take(&r, t.Sub(k.group.epoch), k.key, n)
	return r
}

func (k Keyed[K]) try(n int) Result          { return k.attempt(time.Now(), n) }
func (k Keyed[K]) giveBack(n int)            { k.group.giveBack(k.key, n) }
func (k Keyed[K]) shade(r *Result, n int)    { k.group.shade(r, n) }
func (k Keyed[K]) count(r *Result, n int)    { k.group.count(r, n) }
func (k Keyed[K]) refuse(t time.Time, n int) { k.group.countRefusal(k, t, n) }

func (k Keyed[K]) lacksRoom(n int) bool {
	_, room := k.group.hasRoom(k.key, n)
	return !room && k.group.overflow == RefuseNew
}

// watch keeps the queue of the key for as long as somebody watches it.
func (k Keyed[K]) watch(b bell) {
	if k.key == k.key { //nolint:gocritic // a NaN is not, and its queue would never be found again
		k.group.lines.enter(k.key, k.group.maxWaiters).watch(b)
	}
}

func (k Keyed[K]) unwatch(b bell) {
	if q := k.group.lines.of(k.key); q != nil {
		q.unwatch(b)
		k.group.lines.leave(k.key, q)
	}
}

// Wait takes n tokens of the key as soon as there are that many: see [Group.Wait].
func (k Keyed[K]) Wait(ctx context.Context, n int) error { return k.group.Wait(ctx, k.key, n) }

// WaitAtMost is Wait that gives up at once, with a *LimitedError, where it would take longer than maxWait.
func (k Keyed[K]) WaitAtMost(ctx context.Context, n int, maxWait time.Duration) error {
	return k.group.WaitAtMost(ctx, k.key, n, maxWait)
}
