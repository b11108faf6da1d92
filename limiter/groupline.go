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
