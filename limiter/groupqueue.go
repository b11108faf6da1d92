package limiter

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/internal/clock"
)

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

func (g *Group[K]) wait(ctx context.Context, key K, n int, maxWait time.Duration) (t taken, err error) {
	source := keySource[K]{g, key}
	switch tier, room := g.hasRoom(key, n); {
	case !room && g.overflow == ShareNew:
		g.noRoom.Add(1)
		t, err = g.shared[tier].waitTaken(ctx, n, maxWait)
		t.shared = g.shared[tier]
		return t, g.withMaxKeys(err)
	case !room, key != key: //nolint:gocritic // the queue of a NaN would never be found again
		// is decided at once
		t, err = (&waitQueue{statistics: g.statistics}).wait(ctx, source, n, maxWait)
		return t, g.withMaxKeys(err)
	}
	q := g.queues.acquire(key, g)
	defer g.queues.release(key, q)
	return q.wait(ctx, source, n, maxWait)
}

// withMaxKeys puts MaxKeys into the error of a request for whose key there was no room.
func (g *Group[K]) withMaxKeys(err error) error {
	if limited, ok := errors.AsType[*LimitedError](err); ok {
		limited.MaxKeys = g.MaxKeys()
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
	if !s.group.acquire(&r, &back, time.Since(s.group.epoch), clock.ReadTolerance, s.key, n) && s.group.overflow == RefuseNew {
		r.ResetAfter = noWait
	}
	return r, back
}

func (s keySource[K]) predict(ahead int64, n int) (r Result) {
	s.group.predict(&r, time.Since(s.group.epoch), s.key, ahead, n)
	return r
}
