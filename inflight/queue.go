package inflight

import (
	"context"
	"errors"
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// queue holds the callers that wait for a slot.
//
// The goroutine that releases a slot gives it to a waiter, so a waiter runs only once, and no other
// caller can take the slot in between. No wakeup is lost: a waiter sets the bit waiting before it
// looks for a slot once more, and a release changes the same word, so either the waiter sees the
// free slot or the release sees the bit. A change of the limit first stores the limit and then
// reads that word.
type queue struct {
	config     atomic.Pointer[Queue] // changes with mu held
	maxWaiters atomic.Int64          // 0 for no bound; changes with mu held
	length     atomic.Int64

	mu      sync.Mutex
	backlog *backlog // nil until a caller waits
}

// waiterState says whether a waiter still waits, was served or has left.
type waiterState uint8

const (
	stillWaits waiterState = iota
	hasSlot
	isLate   // waited longer than Target in an overloaded queue
	evicted  // had to leave a full queue
	inShadow // is allowed without a slot
)

// forever means a wait without a limit.
const forever time.Duration = math.MaxInt64

// wait waits for a slot for at most maxWait, and counts the outcome. A call that is allowed may
// hold no slot if shadow mode was switched on meanwhile.
func (l *Limiter) wait(ctx context.Context, maxWait time.Duration) (held bool, err error) {
	c := CallerOf(ctx)
	w, longest := l.join(c)
	if w == nil {
		err = l.newFullError(c, queueFull, waitLimit{})
		l.statistics.countWait(time.Time{}, err)
		return false, err
	}
	began := l.statistics.now()
	err = l.await(ctx, w, waitLimit{wait: maxWait}.shorter(longest))
	if w.state == inShadow {
		l.statistics.count(shadowed)
		return false, nil
	}
	l.statistics.countWait(began, err)
	return err == nil, err
}

// join puts a caller into the queue, and returns the longest time that it may wait. It returns nil
// if the queue is full.
func (l *Limiter) join(c Caller) (w *waiter, longest waitLimit) {
	weight := l.Queue().tenantWeight(c.Tenant) // a function of the user, so not under the lock
	q := &l.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	now := time.Since(l.epoch) // read with the lock held, so it is never earlier on the same clock
	if q.backlog == nil {
		q.backlog = &backlog{config: *q.config.Load()}
	}
	if q.backlog.length == 0 {
		l.turnover.resume(now, l.state.endedCalls())
	}
	if most := int(q.maxWaiters.Load()); most > 0 && q.backlog.length >= most {
		victim := q.backlog.victim(c, weight, now)
		if victim == nil {
			return nil, longest
		}
		q.dismiss(victim, evicted, now)
	}
	w = &waiter{caller: c, since: now, wake: make(chan struct{}, 1)}
	q.backlog.push(w, weight)
	q.length.Add(1)
	longest = q.backlog.longest()
	l.state.setWaiters()
	if a := l.adaptive.Load(); a != nil {
		a.tryRaise(l.InFlight()) // or waiters could wait for calls that never end
	}
	l.serveLocked()
	return w, longest
}

// await blocks until w has a slot or leaves.
func (l *Limiter) await(ctx context.Context, w *waiter, most waitLimit) error {
	for l.awaitWake(ctx, w, most.wait) {
		longest, waits := l.queue.longest(w)
		if !waits {
			break
		}
		most = most.shorter(longest)
	}
	switch l.leave(w) {
	case hasSlot, inShadow:
		return nil
	case isLate:
		return l.newFullError(w.caller, waitedTooLong, l.Queue().targetLimit())
	case evicted:
		return l.newFullError(w.caller, queueFull, waitLimit{})
	default:
	}
	switch err := ctx.Err(); {
	case err == nil:
		return l.newFullError(w.caller, waitedTooLong, most)
	case errors.Is(err, context.DeadlineExceeded):
		return l.newFullError(w.caller, deadlinePassed, waitLimit{})
	default:
		return err
	}
}

// awaitWake blocks until w is woken, and reports false if it has to leave instead.
func (l *Limiter) awaitWake(ctx context.Context, w *waiter, maxWait time.Duration) bool {
	var timeout <-chan time.Time
	if maxWait != forever {
		left := w.since + maxWait - time.Since(l.epoch)
		if left <= 0 {
			return false
		}
		timer := time.NewTimer(left)
		defer timer.Stop()
		timeout = timer.C
	}
	select {
	case <-w.wake:
		return true
	case <-ctx.Done():
	case <-timeout:
	}
	return false
}

// longest returns how long w waits at most, and whether it waits.
func (q *queue) longest(w *waiter) (longest waitLimit, waits bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.backlog.longest(), w.state == stillWaits
}

// position returns how many waiters would be served up to and including a caller that joined now.
func (q *queue) position(c Caller) float64 {
	if q.length.Load() == 0 {
		return 1
	}
	weight := q.config.Load().tenantWeight(c.Tenant)
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.backlog.position(c, weight)
}

// leave removes w if it still waits, and returns the state of w.
func (l *Limiter) leave(w *waiter) waiterState {
	l.reclaim()
	q := &l.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	if w.state == stillWaits {
		q.backlog.remove(w, time.Since(l.epoch))
		q.length.Add(-1)
		l.serveLocked() // clears the bit waiting if this was the last waiter
	}
	return w.state
}

// serveWaiters gives the free slots to waiters.
func (l *Limiter) serveWaiters() {
	l.queue.mu.Lock()
	defer l.queue.mu.Unlock()
	l.serveLocked()
}

func (l *Limiter) serveLocked() {
	q, now := &l.queue, time.Since(l.epoch)
	for q.backlog != nil && q.backlog.length > 0 {
		w, tooLong := q.backlog.next(now)
		if tooLong {
			q.dismiss(w, isLate, now)
			continue
		}
		if !l.state.occupyForWaiter(&l.limit) {
			if !l.statistics.isShadow() {
				return
			}
			q.dismiss(w, inShadow, now)
			continue
		}
		q.backlog.serve(w, now)
		q.length.Add(-1)
		w.state = hasSlot
		close(w.wake)
	}
	l.state.clearWaiters()
	l.turnover.pause(now, l.state.endedCalls())
}

// dismiss makes a waiter leave without a slot.
func (q *queue) dismiss(w *waiter, why waiterState, now time.Duration) {
	q.backlog.remove(w, now)
	q.length.Add(-1)
	w.state = why
	close(w.wake)
}
