package limiter

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// queue lets callers wait for a limiter in order of arrival.
//
// Nothing is charged before a caller's turn comes, so one that leaves leaves no debt, and a
// change of the rate holds for all who still wait. Only the head of the queue sleeps until the limiter
// has something for it; every waiter with a limit also has a timer of its own, so it leaves when its
// time is up, whatever has become of the limiter meanwhile. The goroutines are those of the callers.
type queue struct {
	ahead atomic.Int64 // permits asked for by all who wait, as far as they are counted; above 0 exactly while anybody does
	max   int          // callers that may wait, 0 for any number
	room  int64        // permits that may be waited for, 0 for any number

	bell  bell         // rung when something has changed that the limiter itself is not told of; nil for most
	heard atomic.Int32 // how many bells are to be rung

	mu          sync.Mutex
	first, last *waiter
	length      int
	timer       *time.Timer // runs for the first alone
	bells       []bell      // of those who want to know when there may be more to have here
}

// server is a limiter as its queue sees it.
type server interface {
	now() time.Duration
	// serve takes n permits, whoever waits. RetryAfter is 0 where it cannot be told: then
	// the limiter pokes its queue. ResetAfter is useless where nobody is to wait for it.
	serve(r *Result, at time.Duration, n int)
	// after tells without taking anything how things will stand for one who wants n permits
	// when ahead others have been handed out; its RetryAfter is never too long.
	after(r *Result, at time.Duration, ahead int64, n int)
}

// maxAhead bounds the permits that are counted as asked for, so that neither they nor the sum of those of some queues overflow.
// Of a request beyond it only one is counted.
const maxAhead = 1 << 60

// useless is the ResetAfter by which a server says that waiting is of no use, although there is a RetryAfter.
const useless time.Duration = -1

// request is what a caller wants of a queue.
type request struct {
	n     int
	limit time.Duration // the longest wait wanted
}

// timeout is the channel that ends a wait of the request, nil where it has no limit.
func (r request) timeout() (due <-chan time.Time, stop func() bool) {
	if r.limit == Never {
		return nil, func() bool { return true }
	}
	t := time.NewTimer(r.limit)
	return t.C, t.Stop
}

type waiter struct {
	n          int
	ahead      int64         // what it adds to the permits that all wait for
	wake       chan struct{} // with room for one: look again
	served     bool
	err        error // why it never can be served
	prev, next *waiter
}

// wait returns nil once the permits have been taken.
func (q *queue) wait(ctx context.Context, s server, req request) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if q.ahead.Load() == 0 || req.n < 1 {
		var r Result
		if s.serve(&r, s.now(), req.n); r.OK || peeked(r, req.n) {
			return nil
		}
		if r.RetryAfter == Never || r.ResetAfter == useless || req.limit <= 0 {
			return refused(r, req.n)
		}
	}
	w, err := q.join(ctx, s, req)
	if err != nil {
		return err
	}
	timeout, stop := req.timeout()
	defer stop()
	return q.stand(ctx, s, w, timeout)
}

// join puts the caller at the end of the queue, unless it is plain that waiting there is of no use.
func (q *queue) join(ctx context.Context, s server, req request) (*waiter, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	var r Result
	s.after(&r, s.now(), q.ahead.Load(), req.n)
	if r.RetryAfter == Never {
		return nil, refused(r, req.n)
	}
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) < r.RetryAfter {
		return nil, refusal(PastDue, r.Limit, r.RetryAfter)
	}
	if r.RetryAfter > req.limit {
		return nil, refusal(WaitTooLong, r.Limit, r.RetryAfter)
	}
	if q.max > 0 && q.length >= q.max || q.room > 0 && int64(req.n) > q.room-q.ahead.Load() {
		return nil, refusal(QueueFull, r.Limit, r.RetryAfter)
	}
	w := &waiter{n: req.n, wake: make(chan struct{}, 1)}
	q.push(w)
	return w, nil
}

// stand waits in the queue.
func (q *queue) stand(ctx context.Context, s server, w *waiter, timeout <-chan time.Time) error {
	for {
		due, bell := q.lead(s, w)
		select {
		case <-w.wake:
		case <-due:
		case <-bell:
		case <-timeout:
			return q.leave(s, w, WaitTooLong, nil)
		case <-ctx.Done():
			if err := ctx.Err(); !errors.Is(err, context.DeadlineExceeded) {
				return q.leave(s, w, "", err)
			}
			return q.leave(s, w, PastDue, nil)
		}
		if w.done(q) {
			return w.err
		}
	}
}

// lead does the work of the head of the queue, if that is w: it serves all that can be served, and
// returns the timer and the bell that say when to look again. To others it returns nil.
func (q *queue) lead(s server, w *waiter) (<-chan time.Time, bell) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.first != w {
		return nil, nil
	}
	retry := q.serveAll(s)
	if q.first != w {
		q.first.signal()
		return nil, nil
	}
	if retry == 0 {
		return nil, q.bell
	}
	return q.alarm(retry), q.bell
}

// serveAll serves from the head on, until one cannot be served, and returns its RetryAfter. One that never can be is sent away.
func (q *queue) serveAll(s server) (retry time.Duration) {
	for q.first != nil {
		var r Result
		s.serve(&r, s.now(), q.first.n)
		if !r.OK && r.RetryAfter < Never && r.ResetAfter != useless {
			return r.RetryAfter
		}
		if !r.OK {
			q.first.err = refused(r, q.first.n)
		}
		q.first.served = true
		q.first.signal()
		q.remove(q.first)
	}
	return 0
}

// leave takes w out of the queue. Where it has been served already its permits are its own, and it is too late to
// leave. One whose time is up, for a reason and not by an error of its own, is still served with what is there at that very moment.
func (q *queue) leave(s server, w *waiter, reason Reason, err error) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	head := q.first
	if err == nil && !w.served {
		q.serveAll(s)
	}
	if !w.served {
		q.remove(w)
	}
	if q.first != head {
		q.first.signal()
	}
	if w.served {
		return w.err
	}
	if err != nil {
		return err
	}
	var r Result
	s.after(&r, s.now(), q.ahead.Load(), w.n)
	return refusal(reason, r.Limit, r.RetryAfter)
}

// poke makes the head look again, because the limiter may have more to give than it had.
func (q *queue) poke() {
	if q.ahead.Load() == 0 && q.heard.Load() == 0 {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.first.signal()
	q.ringBells()
}

func (q *queue) alarm(d time.Duration) <-chan time.Time {
	if q.timer == nil {
		q.timer = time.NewTimer(d)
	} else {
		q.timer.Reset(d)
	}
	return q.timer.C
}

func (q *queue) push(w *waiter) {
	if w.prev = q.last; q.last == nil {
		q.first = w
	} else {
		q.last.next = w
	}
	q.last = w
	q.length++
	if w.ahead = int64(w.n); w.ahead > maxAhead-q.ahead.Load() {
		w.ahead = 1
	}
	q.ahead.Add(w.ahead)
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
	q.length--
	if q.ahead.Add(-w.ahead) > 0 {
		return
	}
	if q.timer != nil {
		q.timer.Stop()
		q.timer = nil // the next to wait may do so in another testing/synctest bubble
	}
	q.ringBells() // who was refused because of them need not be now
}

func (w *waiter) done(q *queue) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return w.served
}

func (w *waiter) signal() {
	if w == nil {
		return
	}
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// stepBack makes of how things will stand after the queue what Take answers meanwhile.
func stepBack(r *Result, n int) {
	r.Remaining = 0
	if n > 0 && r.OK {
		r.OK, r.RetryAfter = false, 1 // the head is being served at this moment
	}
}

// peeked reports whether a request is one for nothing, which a wait grants however things stand.
func peeked(r Result, n int) bool { return n == 0 && r.RetryAfter < Never }

// refused is the error for a request that was answered with r.
func refused(r Result, n int) error {
	reason := NoPermits
	if n < 1 || n > r.Limit {
		reason = OverLimit
	}
	return refusal(reason, r.Limit, r.RetryAfter)
}
