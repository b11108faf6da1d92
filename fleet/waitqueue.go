package fleet

import (
	"container/list"
	"context"
	"errors"
	"sync"
	"time"
)

// waitQueues holds the callers of Wait: one queue per key.
type waitQueues struct {
	max int // the most waiters per key; 0 for no bound

	mu     sync.Mutex
	queues map[string]*list.List // of *waiter, in order of arrival; never an empty list
}

// waiter is one caller of Wait.
type waiter struct {
	turn    chan struct{} // closed when the waiter is the first of its queue
	retry   chan struct{} // receives a value when the waiter should ask again
	queue   *list.List
	element *list.Element // of the queue
}

// join appends a waiter to the key's queue. It returns false if the queue is full.
func (q *waitQueues) join(key string) (*waiter, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	queue := q.queues[key]
	switch {
	case queue == nil:
		queue = list.New()
	case q.max > 0 && queue.Len() >= q.max:
		return nil, false
	}
	w := &waiter{turn: make(chan struct{}), retry: make(chan struct{}, 1), queue: queue}
	if w.element = queue.PushBack(w); queue.Front() == w.element {
		close(w.turn)
	}
	if q.queues == nil {
		q.queues = map[string]*list.List{}
	}
	q.queues[key] = queue
	return w, true
}

// leave removes a waiter from the key's queue, in constant time. If it was the first, the next
// waiter gets its turn.
func (q *waitQueues) leave(key string, w *waiter) {
	q.mu.Lock()
	defer q.mu.Unlock()
	wasFirst := w.queue.Front() == w.element
	w.queue.Remove(w.element)
	switch next := w.queue.Front(); {
	case next == nil:
		delete(q.queues, key)
	case wasFirst:
		close(next.Value.(*waiter).turn)
	}
}

// wakeFirst makes the first waiter of the key try again, unless that is the caller itself.
func (q *waitQueues) wakeFirst(key string, caller *waiter) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if queue := q.queues[key]; queue != nil {
		queue.Front().Value.(*waiter).wake(caller)
	}
}

// wakeEachFirst does the same for all keys.
func (q *waitQueues) wakeEachFirst(caller *waiter) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, queue := range q.queues {
		queue.Front().Value.(*waiter).wake(caller)
	}
}

func (w *waiter) wake(caller *waiter) {
	if w == caller {
		return
	}
	select {
	case w.retry <- struct{}{}:
	default: // it will try again anyway
	}
}

// awaitTurn waits until w is the first of its queue. It gives up after limit with errTurnTooLate.
func (w *waiter) awaitTurn(ctx context.Context, limit time.Duration) error {
	select {
	case <-w.turn:
		return nil
	default:
		return waitFor(ctx, limit, w.turn, errTurnTooLate)
	}
}

// sleep waits for d, or until w is woken.
func (w *waiter) sleep(ctx context.Context, d time.Duration) error {
	return waitFor(ctx, d, w.retry, nil)
}

var errTurnTooLate = errors.New("fleet: the wait queue was too slow")

// waitFor waits until a channel receives a signal. It returns late after d, and the error of ctx if
// that ends first.
func waitFor(ctx context.Context, d time.Duration, signal <-chan struct{}, late error) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-signal:
		return nil
	case <-timer.C:
		return late
	case <-ctx.Done():
		return ctx.Err()
	}
}
