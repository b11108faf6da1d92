package fleet

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/weir-go/weir/limiter"
)

// Wait takes n tokens of the key as soon as it can, and then returns nil.
//
// Callers of one process that wait for the same key are served in order of arrival. Only the first
// of them asks Redis, after the RetryAfter of the last refusal and a small random delay, so that
// several processes do not ask at the same time. The order between processes is random. Take does
// not join the queue.
//
// Wait returns a *limiter.LimitedError at once if waiting is pointless:
//
//   - The deadline of ctx comes before the tokens: the error matches context.DeadlineExceeded.
//   - n is more than the limit: the error's RetryAfter is limiter.Never.
//   - MaxWaiters callers are waiting: the error's Reason is limiter.QueueFull.
//
// If ctx ends while waiting, Wait returns its error. While Redis is unavailable the policy decides;
// with FailClosed, Wait goes on until Redis is back. Other errors are those of Take.
func (l *Limiter) Wait(ctx context.Context, key string, n int) error {
	_, err := l.waitFor(ctx, key, n)
	return err
}

func (l *Limiter) waitFor(ctx context.Context, key string, n int) (origin, error) {
	endWait, counted := l.stats.requests.BeginWait(), n
	r, from, atOnce, err := l.wait(ctx, key, n)
	if _, undecided := errors.AsType[*StoreError](err); undecided || atOnce {
		counted = 0
	}
	endWait(counted, err)
	switch {
	case n == 0:
	case atOnce:
		l.stats.requests.Record(r.Result, n)
	case counted != 0 && errors.Is(err, limiter.ErrLimited):
		l.stats.requests.RecordKey(key)
	}
	return from, err
}

// wait does the work of Wait. atOnce reports that it was allowed with the result r without a wait.
func (l *Limiter) wait(ctx context.Context, key string, n int) (r Result, from origin, atOnce bool, err error) {
	if err := ctx.Err(); err != nil {
		return r, from, false, err
	}
	k := newRequestKey(key)
	w, ok := l.waiting.join(k.tag)
	if !ok {
		return r, from, false, fmt.Errorf("%w: MaxWaiters is %d", l.limitedError(limiter.QueueFull, l.link.timeout), l.waiting.max)
	}
	k.waiter = w
	defer l.waiting.leave(k.tag, w)
	if w.awaitTurn(ctx) != nil {
		return r, from, false, l.waitEnded(ctx)
	}
	for atOnce = true; ; atOnce = false {
		r, from, err := l.takeNow(ctx, k, n)
		switch {
		case err != nil:
			return r, from, false, err
		case r.OK:
			return r, from, atOnce, nil
		}
		slack, reason := pointlessWait(ctx, r.RetryAfter)
		if reason != "" {
			if r.NoRoom && reason != limiter.OverLimit {
				reason = limiter.NoRoom
			}
			return r, from, false, l.limitedError(reason, r.RetryAfter)
		}
		if w.sleep(ctx, r.RetryAfter+jitter(r.RetryAfter, slack)) != nil {
			return r, from, false, l.waitEnded(ctx)
		}
	}
}

// waitEnded returns the error of a wait that ctx has ended.
func (l *Limiter) waitEnded(ctx context.Context) error {
	if err := ctx.Err(); !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return l.limitedError(limiter.PastDue, l.link.timeout)
}

// pointlessWait returns why it is pointless to wait for retry, if it is. Otherwise it returns how
// much time is left after that.
func pointlessWait(ctx context.Context, retry time.Duration) (slack time.Duration, reason limiter.Reason) {
	if retry == limiter.Never {
		return 0, limiter.OverLimit
	}
	deadline, ok := ctx.Deadline()
	if !ok {
		return limiter.Never, ""
	}
	if slack = time.Until(deadline) - retry; slack < 0 {
		return 0, limiter.PastDue
	}
	return slack, ""
}

// limitedError returns the error for a request that may succeed after d.
func (l *Limiter) limitedError(reason limiter.Reason, d time.Duration) error {
	e := &limiter.LimitedError{Name: l.name, Reason: reason, Limit: l.maxTake}
	if reason == limiter.NoRoom {
		e.MaxKeys = l.maxKeys
	}
	if d != limiter.Never {
		e.Until = time.Now().Add(d)
	}
	return e
}

// jitter returns a random delay to add to a wait of d: up to a tenth of d, but at least 1ms and at
// most 1s, and at most half of the slack.
func jitter(d, slack time.Duration) time.Duration {
	return rand.N(max(min(max(d/10, time.Millisecond), time.Second, slack/2), 1))
}

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

// awaitTurn waits until w is the first of its queue.
func (w *waiter) awaitTurn(ctx context.Context) error {
	select {
	case <-w.turn: // even if ctx has ended too
		return nil
	default:
	}
	select {
	case <-w.turn:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// sleep waits for d, or until w is woken.
func (w *waiter) sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-w.retry:
		return nil
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
