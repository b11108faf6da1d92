package inflight

import (
	"context"
	"errors"
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// queue holds the callers that wait for a slot, in order of arrival.
//
// The goroutine that releases a slot gives it to the first waiter, so a waiter runs once, and no caller
// can take the slot in between. No wakeup is lost: a waiter sets the bit waiting before it looks for a
// slot once more, and a release changes the same word, so either the waiter sees the free slot or the
// release sees the bit. A change of the limit is stored before it reads that word.
type queue struct {
	maxWaiters int // 0 for no bound
	length     atomic.Int64

	mu          sync.Mutex
	first, last *waiter
}

type waiter struct {
	served     chan struct{} // closed when the waiter has a slot
	hasSlot    bool
	prev, next *waiter
}

// forever is a wait without an end.
const forever time.Duration = math.MaxInt64

// wait waits for a slot for at most maxWait, and counts the outcome.
func (l *Limiter) wait(ctx context.Context, maxWait time.Duration) error {
	w := l.join()
	if w == nil {
		l.statistics.count(refused)
		return l.full(queueFull, 0)
	}
	began := l.statistics.now()
	err := l.await(ctx, w, maxWait)
	l.statistics.countWait(began, err)
	return err
}

// join adds a waiter, or returns nil if the queue is full.
func (l *Limiter) join() *waiter {
	q := &l.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.maxWaiters > 0 && q.length.Load() >= int64(q.maxWaiters) {
		return nil
	}
	w := &waiter{served: make(chan struct{})}
	q.push(w)
	l.state.word.Or(waiting)
	l.serveLocked()
	return w
}

// await blocks until w has a slot or leaves.
func (l *Limiter) await(ctx context.Context, w *waiter, maxWait time.Duration) error {
	var timeout <-chan time.Time
	if maxWait != forever {
		timer := time.NewTimer(maxWait)
		defer timer.Stop()
		timeout = timer.C
	}
	select {
	case <-w.served:
		return nil
	case <-ctx.Done():
	case <-timeout:
	}
	if l.leave(w) {
		return nil
	}
	switch err := ctx.Err(); {
	case err == nil:
		return l.full(waitedTooLong, maxWait)
	case errors.Is(err, context.DeadlineExceeded):
		return l.full(deadlinePassed, 0)
	default:
		return err
	}
}

// leave removes w, or reports that w has a slot.
func (l *Limiter) leave(w *waiter) (hasSlot bool) {
	l.queue.mu.Lock()
	defer l.queue.mu.Unlock()
	if !w.hasSlot {
		l.queue.remove(w)
		l.serveLocked() // clears the bit waiting if this was the last waiter
	}
	return w.hasSlot
}

// serveWaiters gives the free slots to the first waiters.
func (l *Limiter) serveWaiters() {
	l.queue.mu.Lock()
	defer l.queue.mu.Unlock()
	l.serveLocked()
}

func (l *Limiter) serveLocked() {
	q := &l.queue
	for q.first != nil {
		if !l.state.occupyForWaiter(&l.limit) {
			return
		}
		w := q.first
		q.remove(w)
		w.hasSlot = true
		close(w.served)
	}
	l.state.word.And(^uint64(waiting))
}

func (q *queue) push(w *waiter) {
	if w.prev = q.last; q.last == nil {
		q.first = w
	} else {
		q.last.next = w
	}
	q.last = w
	q.length.Add(1)
}

func (q *queue) remove(w *waiter) {
	if w.prev == nil {
		q.first = w.next
	} else {
		w.prev.next = w.next
	}
	if w.next == nil {
		q.last = w.prev
	} else {
		w.next.prev = w.prev
	}
	w.prev, w.next = nil, nil
	q.length.Add(-1)
}
